"""How a peer takes its turn: it finds its best thread count once, then times a few updates whenever it is asked."""

import sys
import time


def fastest(update, repeats):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        update()
        times.append(time.perf_counter() - start)
    return min(times)


def take_turns(update, set_threads):
    best = {}
    for threads in (1, 2):
        set_threads(threads)
        fastest(update, 5)
        best[threads] = fastest(update, 10)
    threads = min(best, key=best.get)
    set_threads(threads)
    print(threads, flush=True)
    for _ in sys.stdin:
        print(fastest(update, 8), flush=True)
