// Modelled times in the record: a row a cell and card, judged against its pin.
#pragma once

#include <string>
#include <vector>

#include "harness/command/kernel_cells.h"
#include "harness/ledger/ledger.h"
#include "harness/model/time_pin.h"
#include "harness/record/record.h"
#include "harness/simt/counting/counts_file.h"

namespace twinbench {

model::TimePin pin_of(const CellTime& time);

// Every modelled time that differs from its pin, in words. A time that is unknown is what the counts' pins tell.
std::vector<std::string> changed_times(const kernels::simt::CountsFile& pins, const std::string& cell,
                                       const std::vector<CellTime>& times);

// What came of one timed cell, into the record and the ledger. `failures`: of its counts; `error`: why it could not
// run.
void add_modelled(Record& record, Ledger& ledger, const kernels::simt::CountsFile& pins,
                  const std::vector<model::Card>& cards, const std::string& cell, const std::vector<CellTime>& times,
                  const std::vector<std::string>& failures, const std::string& error);

}  // namespace twinbench
