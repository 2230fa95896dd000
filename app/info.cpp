// SPDX-License-Identifier: Apache-2.0
// fungi info [STORE]: what a store holds; without one, what this machine can do and which kernels
// were chosen.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "app/cli.h"
#include "fungi/feature/export.h"
#include "fungi/feature/store.h"

namespace fungi::app {
namespace {

int show_machine(bool json) {
  const Cpu& c = cpu();
  std::vector<std::string> supported;
  for (Isa isa : supported_isas()) supported.push_back(to_string(isa));
  const Isa chosen = best_isa();
  const Precision precision = kernel::fastest_precision(chosen);
  const std::string table = kernel::kernel_for(chosen, precision).name;
  if (json) {
    const nlohmann::json out{{"version", FUNGI_VERSION},
                             {"cpu", c.name},
                             {"physical_cores", c.physical_cores},
                             {"logical_cores", c.logical_cores},
                             {"l1d_bytes", c.l1d_bytes},
                             {"l2_bytes", c.l2_bytes},
                             {"l3_bytes", c.l3_bytes},
                             {"supported", supported},
                             {"isa", to_string(chosen)},
                             {"precision", to_string(precision)},
                             {"kernel", table},
                             {"avx512_bf16", c.avx512_bf16}};
    print_json(out);
    return kOk;
  }
  fmt::print(
      "fungi      {}\ncpu        {}\ncores      {} physical, {} logical\ncaches     L1d {}, L2 {}, "
      "L3 {}\n",
      FUNGI_VERSION, c.name, c.physical_cores, c.logical_cores, human_bytes(double(c.l1d_bytes)),
      human_bytes(double(c.l2_bytes)), human_bytes(double(c.l3_bytes)));
  fmt::print("supported  {}\nchosen     {} ({}); FUNGI_ISA forces another\n",
             fmt::join(supported, " "), table, to_string(precision));
  return kOk;
}

}  // namespace

Verb add_info(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand("info", "Say what a store holds, or what this machine can do");
  struct Arguments {
    std::string store;
    bool json = false;
  };
  auto a = std::make_shared<Arguments>();
  self->add_option("store", a->store, "A feature store; nothing: this machine");
  self->add_flag("--json", a->json, "Print JSON");
  return [a] {
    if (a->store.empty()) return show_machine(a->json);
    const StoreInfo info = describe_store(a->store);
    fmt::print("{}\n", a->json ? to_json(info) : to_text(info));
    return int(kOk);
  };
}

}  // namespace fungi::app
