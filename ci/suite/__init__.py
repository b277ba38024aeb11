"""The GPU suite: plans steps by value, runs each in its own process group within a budget, packs what came of it."""
