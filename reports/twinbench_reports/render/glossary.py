"""The words of the report and how its numbers come about."""

METHOD: tuple[tuple[str, str], ...] = (
    ("Parity",
     "Each variant is compared with the baseline run in fp64 on the CPU. The error is divided by the error that the "
     "specification allows, so 1 is the limit "
     "for everything. Five planted wrong answers must be rejected, or the case does not count."),
    ("Counters",
     "Operators, scalar reads, copies and allocations are counted through LibTorch's own hooks. They are exact: the "
     "gate has no tolerance for them."),
    ("Speedups",
     "Both twins run in turns in one process (ABBA, BAAB). Each pair gives one log ratio; the estimate is their median "
     "or Hodges-Lehmann centre with its exact interval. Sampling stops at an interval width, never at a result. Before "
     "and after its samples every variant is judged against the oracle on other data, written into the very tensors "
     "that it reads: one that answers wrongly is rejected and has no speedup."),
    ("Null test",
     "Before anything is timed, a twin is compared with itself. If that shows a difference, no time of the session "
     "decides anything."),
    ("On a GPU",
     "Events on the stream, with a blocking kernel before them where neither twin waits for the device (gpu_span), "
     "else the host's clock until the device is idle "
     "(host_wall); never two clocks in one ratio. Cold runs follow a write of twice the L2 cache, and the session "
     "tests that this flush works."),
    ("Roofline",
     "The bytes and operations that any version must move and compute, over ceilings measured on this machine. "
     "Data-sheet values stand beside, never instead."),
    ("Modelled",
     "What a card would take, computed: accesses are counted while the kernels run on the host, instructions come from "
     "the machine code, constants from the card's file. The longest part decides. Floor over modelled is pinned, and a "
     "drop fails; nothing modelled counts as measured."),
    ("Extrapolated",
     "The baseline of a large scenario is run on fewer flows and scaled; such numbers are marked wherever they stand."),
    ("Gate",
     "A failure outranks a gap, a gap outranks a pass. Against an earlier record a speedup fails only where its change "
     "is beyond the limit, its interval excludes "
     "no change, and it survives the false discovery rate of 5 % over all pairs; it is undecided where the interval "
     "could hide three times the limit. Nothing measured is never a pass."),
)

GLOSSARY: tuple[tuple[str, str], ...] = (
    ("twin", "a component on one device, in one dtype and case, as baseline and optimized variant"),
    ("baseline", "the variant that commits what the documents accuse it of"),
    ("optimized", "the variant that does not"),
    ("library", "the best stock LibTorch way to do the same, where one exists: it shows a strawman for what it is"),
    ("sin", "what the documents accuse the baseline of"),
    ("proof counter", "the count that shows the sin present in the baseline and gone from the optimized variant"),
    ("regime", "hot: data in cache; cold: caches flushed; rotating: inputs change from call to call"),
    ("interval",
     "the range of ratios that the pairs do not contradict, at the confidence of the record (95 % unless said)"),
    ("gap closed",
     "(baseline - optimized) over (baseline - floor): of what could be saved, the share that is; the floor is what the "
     "bytes and operations that any version needs take at the measured ceilings. None where the data stays in a "
     "cache, for which that floor does not hold"),
    ("n", "the number of pairs"),
    ("smallest visible", "the smallest slowdown that so many pairs of this spread would have shown nine times in ten"),
    ("worst ratio", "largest error over allowed error; at most 1 passes"),
    ("vacuity", "planted wrong answers that the comparator must reject"),
    ("host, launch gaps, kernels",
     "the parts of a speedup on a device: time without any of the run's work there, waiting between kernels, and the "
     "kernels themselves"),
    ("timer limited", "shorter than 20 empty samples: the timer shows more than the work, so there is no verdict"),
    ("rejected",
     "its answers were wrong before, while or after it was timed: it has a time, but no speedup, and the gate fails"),
    ("noise floor", "the difference below which this session believes nothing"),
)
