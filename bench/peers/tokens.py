"""Token embeddings in PyTorch: weight gradients, and the n-gram embedding."""
import torch

from timing import milliseconds
from works import (DIM, HIDDEN, NGRAM_TOKENS, TOKENS, VOCABULARY,
                   gradient_bytes, ngram_bytes)

SIGN_ROWS = 8192


def generator():
    return torch.Generator(device="cuda").manual_seed(2)


def even():
    return torch.randint(VOCABULARY, (TOKENS,), device="cuda",
                         generator=generator())


def zipf():
    """Rank r with a frequency of about 1 / r."""
    u = torch.rand(TOKENS, device="cuda", generator=generator(),
                   dtype=torch.float64)
    return (torch.pow(float(VOCABULARY), u) - 1).long()


def one_row():
    return torch.full((TOKENS,), 17, dtype=torch.int64, device="cuda")


def gradient(ids):
    """bf16 gradients of tokens into an fp32 main_grad."""
    main = torch.zeros(VOCABULARY, HIDDEN, device="cuda")
    rows = torch.randn(TOKENS, HIDDEN, device="cuda",
                       generator=generator()).bfloat16()
    wide = rows.float()

    def dense():
        main.add_(torch.ops.aten.embedding_dense_backward(
            rows, ids, VOCABULARY, -1, False))

    floor = gradient_bytes(torch.unique(ids).numel())
    yield ("torch index_add_ of rows in fp32 already", floor,
           milliseconds(lambda: main.index_add_(0, ids, wide)))
    yield ("torch index_add_, widening included", floor,
           milliseconds(lambda: main.index_add_(0, ids, rows.float())))
    yield ("torch embedding_dense_backward + add_", floor, milliseconds(dense))


def sign_rows(tokens):
    """Rows of the sign pool, of bigrams and of trigrams."""
    one = torch.nn.functional.pad(tokens, (1, 0))[:-1]
    two = torch.nn.functional.pad(tokens, (2, 0))[:-2]
    pair = ((30011 * one) ^ (48271 * tokens)) & (SIGN_ROWS - 1)
    triple = ((26801 * two) ^ (39779 * one) ^ (58699 * tokens)) & (SIGN_ROWS - 1)
    pair[:1] = 0
    triple[:2] = 0
    return pair, triple


def ngram_embed():
    random = generator()
    tokens = torch.randint(50257, (NGRAM_TOKENS,), device="cuda",
                           dtype=torch.int32, generator=random)
    slots = torch.randperm(2 * NGRAM_TOKENS, device="cuda", generator=random)
    pairs, triples = slots[:NGRAM_TOKENS], slots[NGRAM_TOKENS:]
    cache = torch.randn(2 * NGRAM_TOKENS, DIM, device="cuda",
                        generator=random).bfloat16()
    pool = torch.where(
        torch.rand(SIGN_ROWS, DIM, device="cuda", generator=random) < 0.5,
        -1.0, 1.0).bfloat16()
    back = torch.empty(2 * NGRAM_TOKENS, DIM, dtype=torch.bfloat16,
                       device="cuda")

    def both():
        pair, triple = sign_rows(tokens)
        out = cache[pairs] * pool[pair] + cache[triples] * pool[triple]
        torch.mul(out, pool[pair], out=back[:NGRAM_TOKENS])
        torch.mul(out, pool[triple], out=back[NGRAM_TOKENS:])

    yield "torch, op by op", ngram_bytes(), milliseconds(both)


PEERS = {
    "gradient_even": lambda: gradient(even()),
    "gradient_zipf": lambda: gradient(zipf()),
    "gradient_one_row": lambda: gradient(one_row()),
    "ngram_embed": ngram_embed,
}
