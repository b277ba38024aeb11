// The parts of the selftest's list.
#pragma once

#include "harness/selftest/selftest.h"

namespace twinbench::selftest {

std::vector<SelftestCase> wrong_answers();           // twins whose numbers are wrong, some only sometimes
std::vector<SelftestCase> wrong_behaviour();         // twins that compute the right numbers in a wrong way
std::vector<SelftestCase> wrong_when_timed();        // twins that only timing makes wrong, or that are wrong in it too
std::vector<SelftestCase> wrong_in_state_or_kind();  // of twins with state and complex numbers
std::vector<SelftestCase> sly_twins();               // right where one looks: late, cached, alone, on neutral inputs
std::vector<SelftestCase> meddlers();                // change the process, or leave something behind
std::vector<SelftestCase> sly_when_timed();          // that only the rules of timing can catch
std::vector<SelftestCase> sly_jobs();                // against the runner: forged results, early ends, no end
std::vector<SelftestCase> host_twins();              // data at set-up only: remembered results, controls beside them
std::vector<SelftestCase> memory_twins();            // few contents change between runs, or none, controls beside them
std::vector<SelftestCase> simt_twins();              // the CUDA path on the host, controls beside them
std::vector<SelftestCase> device_twins();            // on the simulated device, controls beside them
std::vector<SelftestCase> correct_controls();
std::vector<SelftestCase> correct_in_state_or_kind();
std::vector<SelftestCase> correct_when_timed();
std::vector<SelftestCase> correct_at_the_edge();  // near what the rules of the sly ones forbid
std::vector<SelftestCase> correct_at_the_edge_when_timed();

}  // namespace twinbench::selftest
