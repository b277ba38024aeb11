"""Every operator beside the torch modules a user would write, on the same parameters: what operator_table.py times.

A pair is made from the sizes and options of a case: `data` (the tensors of one call), `parameters` (trained ones),
`module(*data)` and `operator(*data)`, which both return the trained results in the same order."""

from operator_modules.attention import attention_pairs
from operator_modules.encoder import encoder_pairs
from operator_modules.flows import (
    admission_data, admission_pairs, admitted, collection_pairs, compacted, compaction_data, compaction_pairs,
    flow_step, flow_step_data, flow_step_pairs, placed_flows, placement_pairs, stop_data, stop_pairs, stopped)
from operator_modules.networks import carrier_pairs, collector_pairs, heads_pairs, mapper_pairs, neuron_pairs
from operator_modules.sem import cayley_pairs, ring_graph, scan_pairs, scanned
from operator_modules.trainer2 import retrieval_pairs

PAIRS = {
    "energy_flow.adaptive_stop": stop_pairs,
    "energy_flow.flow_placement": placement_pairs,
    "energy_flow.flow_movement": flow_step_pairs,
    "energy_flow.spawn_admission": admission_pairs,
    "sem.cayley": cayley_pairs,
    "sem.selective_scan": scan_pairs,
    "trainer2.fused_retrieval": retrieval_pairs,
    "energy_flow.embedding_mapper": mapper_pairs,
    "energy_flow.simple_neuron": neuron_pairs,
    "energy_flow.energy_carrier": carrier_pairs,
    "energy_flow.carrier_heads": heads_pairs,
    "energy_flow.surface_collection": collection_pairs,
    "energy_flow.output_collector": collector_pairs,
    "energy_flow.flow_compaction": compaction_pairs,
    "energy_flow.fused_attention": attention_pairs,
    "energy_flow.text_encoder": encoder_pairs,
}

# Sizes that users have beside the cases of `twinbench list`.
ALSO = {
    "energy_flow.energy_carrier": [
        {
            "name": "flows_64",
            "pass": "forward",
            "options": {},
            "sizes": {"flows": 64, "features": 64, "hidden": 512, "layers": 2},
        }
    ]
}
