"""The review of a run of `clinveil deidentify` in a browser of this machine.

`queue`: which notes, the worst first; `desk`: what a reviewer sees and does; `log`: each step, on disk before it is
said to be saved; `server`: the page's own server, for this machine only. The page itself lies in `page`.
"""
