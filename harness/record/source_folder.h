// Where the sources were at build time. In an object of its own: the only one whose bytes depend on the checkout's
// folder, so that the compiler cache serves every other checkout with all the rest.
#pragma once

namespace twinbench {

extern const char* const kSourceFolder;

}  // namespace twinbench
