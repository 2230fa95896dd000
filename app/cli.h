// SPDX-License-Identifier: Apache-2.0
// What the verbs of the command line share: exit codes, the model options, printing. One file per
// verb registers itself on the parser and leaves a function to run.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fungi/backbone/backbone.h"

namespace fungi::app {

enum Exit : int {
  kOk = 0,
  kError = 1,          // a user error or a bad file; the message says which
  kUsage = 2,          // the command line itself is wrong
  kPartial = 3,        // done, but some samples failed and are recorded
  kInterrupted = 130,  // Ctrl-C: what was computed is saved
};

// A verb adds its sub-command; the returned function runs it.
using Verb = std::function<int()>;
using AddVerb = Verb (*)(CLI::App& parent, CLI::App*& self);

// -m, --layer, --precision, --isa, --set, -j: how to open a backbone.
struct ModelOptions {
  std::string model, layer = "blocks.-1.attn.proj", precision = "auto";
  std::vector<std::string> facts;  // key=value
  unsigned threads = 0;            // 0 = physical cores

  void add_to(CLI::App& verb, bool layer_option);
  BackboneOptions backbone() const;
  unsigned thread_count() const;
};

// --projection and --projection-dim.
struct ProjectionArguments {
  std::string kind = "sign";
  size_t rows = 0;  // 0 = the embedding's width

  void add_to(CLI::App& verb);
  // The tensor 'projection' of the file `given` for the kind "matrix"; otherwise empty.
  Matrix<float> read_matrix(const std::string& given) const;
};

// From now on the first Ctrl-C (or SIGTERM) sets this; the second ends the program at once.
const std::atomic<bool>& stop_on_interrupt();

// What --objectives says: "none" alone means the embedding and nothing else.
std::vector<std::string> objective_list(const std::vector<std::string>& given);

// Checks a count: the parser's own check for positive numbers answers with a range of 300 digits.
CLI::Validator at_least_one();

bool is_terminal(int descriptor);

// "1.2 G", "350 M": for people.
std::string human_bytes(double bytes);
double peak_rss_mb();

Verb add_extract(CLI::App& parent, CLI::App*& self);
Verb add_project(CLI::App& parent, CLI::App*& self);
Verb add_knn(CLI::App& parent, CLI::App*& self);
Verb add_linear(CLI::App& parent, CLI::App*& self);
Verb add_kmeans(CLI::App& parent, CLI::App*& self);
Verb add_retrieve(CLI::App& parent, CLI::App*& self);
Verb add_pca(CLI::App& parent, CLI::App*& self);
Verb add_index(CLI::App& parent, CLI::App*& self);
Verb add_search(CLI::App& parent, CLI::App*& self);
Verb add_report(CLI::App& parent, CLI::App*& self);
Verb add_reproduce(CLI::App& parent, CLI::App*& self);
Verb add_cka(CLI::App& parent, CLI::App*& self);
Verb add_export(CLI::App& parent, CLI::App*& self);
Verb add_inspect(CLI::App& parent, CLI::App*& self);
Verb add_models(CLI::App& parent, CLI::App*& self);
Verb add_info(CLI::App& parent, CLI::App*& self);
Verb add_bench(CLI::App& parent, CLI::App*& self);

}  // namespace fungi::app
