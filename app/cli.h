// SPDX-License-Identifier: Apache-2.0
// What the verbs of the command line share: exit codes, the model options, printing. One file per
// verb registers itself on the parser and leaves a function to run.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fungi/backbone/backbone.h"
#include "fungi/base/error.h"
#include "fungi/base/scratch_matrix.h"

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

// -j.
struct ThreadsOption {
  unsigned threads = 0;  // 0 = physical cores

  void add_to(CLI::App& verb);
  unsigned count() const { return threads ? threads : default_threads(); }
};

// --memory of verbs whose rows may outgrow it.
struct MemoryOption {
  size_t bytes = 0;  // 0 = default_memory_limit()

  CLI::Option* add_to(CLI::App& verb);
  size_t limit() const { return bytes ? bytes : default_memory_limit(); }
};

// --set
struct FactsOption {
  std::vector<std::string> words;  // key=value

  void add_to(CLI::App& verb);
  StatedFacts read() const;  // Error where one is stated twice
};

// -m, --layer, --layers, --precision, --set, -j: how to open a backbone.
struct ModelOptions {
  std::string model, layer = "blocks.-1.attn.proj", precision = "auto";
  std::vector<std::string> layers;  // instead of `layer`
  FactsOption facts;
  ThreadsOption threads;

  CLI::Option* add_to(CLI::App& verb, const char* description);  // both of -m
  void add_layers(CLI::App& verb);  // after add_to()
  BackboneOptions backbone() const;
  std::optional<Precision> stated_precision() const;  // none: auto
};

// What a user's own projection is called in the file of --given.
inline constexpr const char* kProjectionTensor = "projection";

// --projection and --projection-dim.
struct ProjectionArguments {
  std::string kind = "sign";
  size_t rows = 0;  // 0 = the embedding's width

  void add_to(CLI::App& verb);
  // Mistakes of the command line: rows stated for a kind that has its own, the kind "matrix"
  // without a file that holds it.
  void require_consistent(const std::string& given) const;
  // The tensor 'projection' of the file `given` for the kind "matrix"; otherwise empty.
  Matrix<float> read_matrix(const std::string& given) const;
};

// Error naming the place of a value that is none, in a file that a user gave.
void require_finite(View<const float> values, const std::string& name, const std::string& file);

CLI::Validator positive_number();

// Of options whose value is "name=something".
CLI::Validator assignment(const char* shape);

// From now on the first Ctrl-C (or SIGTERM, or the terminal going away) sets this; the second ends the program at once.
const std::atomic<bool>& stop_on_interrupt();

// What the words of --objectives say, one specification each or several with commas: "none" alone
// means the embedding and nothing else.
std::vector<std::string> objective_list(const std::vector<std::string>& words);

// A word of --objectives; the names and parameters in it are checked.
CLI::Validator objective_word();

// The parameters of all objectives with their values, as the end of a help text.
std::string objective_parameters();

// What --metric may be.
CLI::Validator metric_name();

// The type of options that are at least 1: main() checks all that are whole numbers.
inline constexpr const char* kCount = "COUNT";

// -k of verbs whose neighbours vote.
struct VotersOption {
  size_t k = 20;
  const CLI::Option* option = nullptr;

  void add_to(CLI::App& verb);
  std::optional<size_t> asked() const;  // nothing: the library chooses
};

bool is_terminal(int descriptor);

// Everything for stderr goes through this: a message that cannot be shown (the disk of a log is
// full) is no reason to stop.
template <class... T>
void say(fmt::format_string<T...> format, T&&... values) {
  const std::string text = fmt::format(format, std::forward<T>(values)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

// An Error as a user reads it.
void tell(const Error& error);

// What a user should know but need not act upon; in --json it is part of the result.
struct Notes {
  bool shown;
  std::vector<std::string> list = {};

  void add(const std::string& note);
  void add(const std::vector<std::string>& notes);
};

// A file name as a terminal may have it: control bytes are '?', line ends too unless allowed.
std::string shown(std::string_view text, bool lines = false);

// A result for programs. Names of files are bytes: those that are no UTF-8 become U+FFFD.
void print_json(const nlohmann::json& value);

// "1.2 G", "350 M": for people.
std::string human_bytes(double bytes);
double peak_rss_mb();

Verb add_extract(CLI::App& parent, CLI::App*& self);
Verb add_merge(CLI::App& parent, CLI::App*& self);
Verb add_plan(CLI::App& parent, CLI::App*& self);
Verb add_pull(CLI::App& parent, CLI::App*& self);
Verb add_project(CLI::App& parent, CLI::App*& self);
Verb add_knn(CLI::App& parent, CLI::App*& self);
Verb add_choose(CLI::App& parent, CLI::App*& self);
Verb add_linear(CLI::App& parent, CLI::App*& self);
Verb add_kmeans(CLI::App& parent, CLI::App*& self);
Verb add_retrieve(CLI::App& parent, CLI::App*& self);
Verb add_pca(CLI::App& parent, CLI::App*& self);
Verb add_index(CLI::App& parent, CLI::App*& self);
Verb add_search(CLI::App& parent, CLI::App*& self);
Verb add_segment(CLI::App& parent, CLI::App*& self);
Verb add_serve(CLI::App& parent, CLI::App*& self);
Verb add_prompts(CLI::App& parent, CLI::App*& self);
Verb add_report(CLI::App& parent, CLI::App*& self);
Verb add_reproduce(CLI::App& parent, CLI::App*& self);
Verb add_cka(CLI::App& parent, CLI::App*& self);
Verb add_export(CLI::App& parent, CLI::App*& self);
Verb add_inspect(CLI::App& parent, CLI::App*& self);
Verb add_models(CLI::App& parent, CLI::App*& self);
Verb add_info(CLI::App& parent, CLI::App*& self);
Verb add_bench(CLI::App& parent, CLI::App*& self);

}  // namespace fungi::app
