"""How OpenMP's waiting threads wait, as the twinbench program decides it: TWINBENCH_WAIT_POLICY, nothing else. They
sleep by default: those that spin take a core from the thread that works, 68 ms a call on a busy machine in an operator
of 0.4 ms."""
import os
import sys

POLICY = "TWINBENCH_WAIT_POLICY"


def settle() -> str:
    """Before the first `import torch`: its OpenMP runtime reads its variables once, as it loads. Returns and
    prints the policy."""
    policy = os.environ.get(POLICY) or "passive"
    if policy not in ("passive", "active", "environment"):
        raise ValueError(f"bad_argument: {POLICY}: {policy}; remedy: give passive, active or environment")
    overridden = []
    if policy != "environment":
        present = {name: os.environ[name] for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT") if name in os.environ}
        right = present.get("OMP_WAIT_POLICY", "").lower() == policy
        if "torch" in sys.modules and (not right or "GOMP_SPINCOUNT" in present):
            raise RuntimeError(f"bad_argument: OMP_WAIT_POLICY: torch is loaded, too late for {policy}; remedy: call "
                               f"waiting_threads.settle() before `import torch`, or set {POLICY}=environment")
        if right:
            del present["OMP_WAIT_POLICY"]
        os.environ["OMP_WAIT_POLICY"] = policy.upper()
        os.environ.pop("GOMP_SPINCOUNT", None)  # a count of turns goes before the policy
        overridden = [f"{name}={value}" for name, value in present.items()]
    print(f"waiting threads: {policy}" + (f", not {' '.join(overridden)}" if overridden else ""), file=sys.stderr)
    return policy
