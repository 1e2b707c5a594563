"""A public language model of two layers with random weights, in the files of Hugging Face."""

from __future__ import annotations


def saved_public_model(folder, texts):
    """Write the model with a byte pair vocabulary of these texts; return the folder."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    from clinveil.core import seeded

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    how = {
        "special_tokens": ["<|endoftext|>"],
        "initial_alphabet": alphabet,
        "show_progress": False,
    }
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=300, **how))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>").save_pretrained(
        folder
    )
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=16, intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
        tie_word_embeddings=True,
        initializer_range=0.3,
    )  # fmt: skip
    with seeded(3):
        LlamaForCausalLM(config).save_pretrained(folder)
    return folder
