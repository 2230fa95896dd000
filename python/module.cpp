// SPDX-License-Identifier: Apache-2.0
// fungi._fungi: the library for Python. What people call is in python/fungi/*.py, which checks and
// names arguments; here they become calls of the library.
#include "python/bind.h"

NB_MODULE(_fungi, m) {
  using namespace fungi::python;
  nb::set_leak_warnings(false);  // what lives until the interpreter ends is no leak
  m.attr("__version__") = FUNGI_VERSION;
  add_errors(m);
  add_stores(m);
  add_evaluations(m);
  add_rankings(m);
  add_neighbours(m);
  add_indices(m);
  add_searches(m);
  add_models(m);
  add_extractors(m);
  add_extractions(m);
  add_works(m);
  add_facts(m);
  add_segments(m);
}
