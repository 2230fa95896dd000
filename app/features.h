// SPDX-License-Identifier: Apache-2.0
// What the evaluation verbs share: which blocks of a store to combine and how, tables of results.
#pragma once

#include <string>
#include <vector>

#include "app/cli.h"
#include "app/seeds.h"
#include "fungi/evaluate/protocol.h"

namespace fungi::app {

struct FeatureOptions {
  std::string features;  // "embedding+kl"; empty: embedding, then one block more at a time
  bool all_combinations = false;
  size_t pca = 512;  // 0: never
  std::string reduce = "pca";
  SeedsOption seeds;
  MemoryOption memory;
  bool exact_gradients = false;  // compare whole gradients by their kept factors
  ThreadsOption threads;
  bool json = false;
  Comm* ranks = nullptr;  // other processes of this evaluation; none: alone

  void add_to(CLI::App& verb, bool with_pca = true);
  void add_exact_gradients(CLI::App& verb);  // for verbs that need neighbours only; after add_to
  // For the library. Notes go to stderr, and so does the progress of long work, under this label; a
  // line of it ends with the next combination or note, or with the options.
  CombinationOptions combinations(const std::string& label, const uint32_t* seed = nullptr) const;
  // Of these stores; `draws`: what the verb itself does. `hint` says how it would draw otherwise.
  SeededWork seeded(const std::vector<std::string>& stores, bool draws, const char* hint) const;
  // What was reduced how, beside "pca" and "pca_applied".
  void tell_reduction(nlohmann::json& one, bool reduced) const;
};

void add_reduce(CLI::App& verb, std::string& reduce);

// A table of strings with aligned columns; numbers right.
void print_table(const std::vector<std::string>& head,
                 const std::vector<std::vector<std::string>>& rows);
std::string percent(double share);  // "71.27"
// Accuracies of gradients of several layers, one line per curve; nothing where there are none.
void print_layer_curves(const std::vector<std::pair<std::string, double>>& accuracies);

}  // namespace fungi::app
