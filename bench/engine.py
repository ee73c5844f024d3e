"""A real llama.cpp with one model file, on loopback: for the tests of the mechanics and the bench of the quality.

    python bench/engine.py MODEL.gguf --context 2048

It prints its address once the model is loaded, and ends when its standard input does. One thread: on a machine with few
cores two of them wait for each other more than they work.
"""

from __future__ import annotations

import argparse
import sys

import xllamacpp


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a GGUF file")
    parser.add_argument("--context", type=int, default=8192, help="tokens that it can see at once")
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()

    params = xllamacpp.CommonParams()
    params.model.path = given.model
    params.n_ctx = given.context
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.sampling.seed = 1
    params.use_jinja, params.warmup = True, False
    params.hostnames, params.port = ["127.0.0.1"], given.port
    server = xllamacpp.Server(params)
    print(f"listening on {server.listening_address}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
