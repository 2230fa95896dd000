// SPDX-License-Identifier: Apache-2.0
#include "app/extract_arguments.h"

#include <algorithm>

#include "fungi/feature/reopen.h"

namespace fungi::app {

void ExtractArguments::add_to(CLI::App& verb) {
  verb.add_option(
          "data", data,
          "Folder of classes, flat folder, list (.csv .tsv .jsonl), tar shards, CIFAR or IDX files")
      ->required();
  CLI::Option* model_option = model.add_to(
      verb, "Checkpoint file or folder (safetensors, .pth, .bin, .npz); not needed with --like");
  model_option->required();
  verb.add_option("-o,--output", store, "The store: a folder, made if needed")
      ->required()
      ->type_name("STORE");
  verb.add_option(
          "--objectives", objectives,
          "kl, dino, simclr, deepcluster, ibot with parameters (simclr:negatives=64), or none")
      ->capture_default_str()
      ->check(objective_word());
  verb.add_option("--preset", preset, "native: what is right; paper, lib: what the references do")
      ->capture_default_str()
      ->check(CLI::IsMember({"native", "paper", "lib"}));
  projection.add_to(verb);
  verb.add_option("--given", given,
                  "Heads or a projection of your own: .npz or .safetensors with tensors named as "
                  "in the store's state");
  verb.add_option("--seed", seed, "Seed of heads, projection, crops and support")
      ->capture_default_str();
  verb.add_option("--like", like,
                  "Another store: its heads, negatives and numbers of classes are used, its "
                  "model and settings for every option that is left out; others are refused")
      ->each([model_option](const std::string&) { model_option->required(false); });
  verb.add_option("--kind", kind, "Kind of data set: auto, classes, flat, list, tar, cifar, idx")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "classes", "flat", "list", "tar", "cifar", "idx"}));
  verb.add_option("--split", split,
                  "Split of the data set: a folder in it; of CIFAR and IDX files train or test");
  verb.add_option("--storage", storage, "float32 or float16")
      ->capture_default_str()
      ->check(CLI::IsMember({"float32", "float16"}));
  verb.add_option("--shard", shard, "Samples per shard; 0 = chosen by their cost")
      ->capture_default_str();
  auto* limit_option = verb.add_option("--limit", limit, "Only the first so many samples; 0 = all")
                           ->capture_default_str();
  verb.add_flag(
      "--keep-factors", factors,
      "Also store the gradients' factors, for other projections and exact gradient neighbours");
  verb.add_flag("--exif", exif, "Turn pictures as their EXIF orientation says");
  verb.add_flag("--allow-truncated", truncated, "Use what a cut-off JPEG or PNG still holds");
  verb.add_flag("--strict", strict,
                "End after the shard with the first bad file, which is recorded, too");
  verb.add_flag("--retry-failed", retry, "Try recorded failures again");
  // Together they would drop all rows beyond the limit, which nobody means.
  verb.add_flag("--prune", prune, "Drop rows whose files have gone")->excludes(limit_option);
  verb.add_flag("--overwrite", overwrite, "Throw away what the store holds");
  verb.add_flag("--dry-run", dry_run, "Check everything, write nothing");
  verb.add_flag("-q,--quiet", quiet, "No progress, no notes");
  verb.add_flag("--json", json, "Print JSON");
  verb.footer(objective_parameters());
  verb.final_callback([this, &verb] {
    follow(verb);
    if (objective_list(objectives).empty())
      for (const char* option : {"--projection", "--projection-dim", "--layer", "--keep-factors"})
        if (verb.get_option(option)->count() > 0)
          throw CLI::ValidationError(
              option, "is about gradients, of which --objectives none has none: leave it out");
    if (verb.get_option("--projection")->count() + verb.get_option("--projection-dim")->count() > 0)
      projection.require_consistent(given);
    if (verb.get_option("--keep-factors")->count() > 0 && factors && storage == "float16")
      throw CLI::ValidationError("--keep-factors",
                                 "small gradients do not survive --storage float16, and nothing "
                                 "could use the factors: leave one of the two out");
  });
}

void ExtractArguments::follow(const CLI::App& verb) {
  if (verb.get_option("--like")->count() == 0) return;
  if (like.empty())
    fail("expected the folder of a store, found an empty name", "--like",
         "name the store to follow, or omit --like");
  const ExtractionRecord record{followed_manifest(like), {}, like};
  const StoreSpec& spec = record.manifest.spec;
  const BackboneOptions backbone = backbone_options(record);
  const ExtractorOptions options = extractor_options(record);
  const auto left_out = [&](const char* option) { return verb.get_option(option)->count() == 0; };

  if (left_out("--model")) model.model = spec.model_path;
  require_same_model(record, model.model);
  const std::vector<std::string> stated = model.facts.words;  // those not stated anew stay
  for (const auto& fact : backbone.stated_facts) {
    const std::string start = fact.first + "=";
    if (std::none_of(stated.begin(), stated.end(),
                     [&](const std::string& own) { return own.starts_with(start); }))
      model.facts.words.push_back(start + fact.second);
  }
  if (left_out("--preset")) preset = to_string(options.preset);
  if (left_out("--seed")) seed = options.seed;
  projection_seed = options.projection_seed;
  if (left_out("--storage")) storage = to_string(spec.type);
  if (left_out("--exif")) exif = options.decode.exif_orientation;
  if (left_out("--allow-truncated")) truncated = options.decode.allow_truncated;
  if (left_out("--objectives")) {
    objectives = options.objectives;
    if (objectives.empty()) objectives = {"none"};
  }
  if (options.objectives.empty()) return;  // there was neither layer nor projection
  if (left_out("--keep-factors") && !objective_list(objectives).empty())
    factors = options.keep_factors;
  if (left_out("--layer")) model.layer = backbone.layer;
  if (left_out("--projection")) projection.kind = to_string(options.projection);
  const bool own_rows =
      options.projection == ProjectionKind::matrix || options.projection == ProjectionKind::none;
  if (left_out("--projection-dim") && !own_rows) projection.rows = options.projection_rows;
}

}  // namespace fungi::app
