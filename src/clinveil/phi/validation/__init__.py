"""What a hospital can know of recall on its own notes, where nobody has marked them."""
