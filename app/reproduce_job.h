// SPDX-License-Identifier: Apache-2.0
// The features of one backbone on one data set, as a table wants them: where they lie, and how they
// come there.
#pragma once

#include "app/reproduce_run.h"
#include "fungi/feature/extractor.h"

namespace fungi::app {

// The folder that all of a run's files lie in; a rehearsal has its own.
std::filesystem::path work_folder(const RunOptions& options);
// Of the stores: "train", "test", ... Tables that want the same features share them.
std::filesystem::path stores_folder(const PaperTable& table, const PaperBackbone& facts,
                                    const PaperData& data, const RunOptions& options,
                                    ProjectionKind projection);
// Settings that are another projection, each with stores of its own.
const std::map<std::string, ProjectionKind>& projection_settings();
std::vector<ProjectionKind> projections_of(const PaperTable& table);
// Which parts of the data set the table looks at, by their names.
std::vector<std::pair<std::string, const FoundSplit*>> splits_of(const PaperTable& table,
                                                                 const PaperData& data,
                                                                 const FoundData& found);

struct Job {
  const PaperTable& table;
  const PaperBackbone& facts;
  const Backbone& backbone;
  const PaperData& data;
  const FoundData& found;
  const RunOptions& options;
  Pool& pool;
  ProjectionKind projection = ProjectionKind::sign;
  std::vector<std::string> notes = {};

  std::filesystem::path folder() const;
  ExtractorOptions extractor() const;
  std::unique_ptr<Dataset> open(const FoundSplit& from, DatasetOptions wanted) const;
  Store extract(const FoundSplit& from, const std::string& name,
                const std::filesystem::path& like = {});
  // Advice of other verbs is not for this one.
  Error with_own_hint(const Error& e, const std::filesystem::path& folder) const;
  // The ground truth of retrieval; that of a rehearsal is written beside its features.
  std::filesystem::path truth() const;

 private:
  Store extract_to(const std::filesystem::path& folder, const FoundSplit& from,
                   const std::string& name, const std::filesystem::path& like);
};

}  // namespace fungi::app
