// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/follow.h"

#include "fungi/base/error.h"
#include "fungi/feature/reopen.h"
#include "fungi/store/text.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

ExtractionRecord record_of(const fs::path& like) {
  if (like.empty())
    fail("expected the folder of a store, found an empty name", "`like`",
         "name the store to follow, or omit `like`");
  return {followed_manifest(like), {}, like.string()};
}

}  // namespace

ExtractionSettings followed_settings(const fs::path& like) {
  const ExtractionRecord record = record_of(like);
  const BackboneOptions opened = backbone_options(record);
  ExtractionSettings s{.model = record.manifest.spec.model_path,
                       .extractor = extractor_options(record),
                       .type = record.manifest.spec.type};
  s.backbone.stated_facts = opened.stated_facts;
  const ProjectionKind kind = s.extractor.projection;
  if (!s.extractor.objectives.empty())
    s.backbone.layer = opened.layer, s.backbone.layers = opened.layers;
  if (kind == ProjectionKind::matrix || kind == ProjectionKind::none)
    s.extractor.projection_rows = 0;
  return s;
}

void require_followed_model(const fs::path& like, const fs::path& model) {
  require_same_model(record_of(like), model);
}

std::optional<StoreManifest> begun_store(const fs::path& folder) {
  const fs::path file = folder / "manifest.json";
  std::error_code ignored;  // what cannot be looked at is told when it is opened
  if (folder.empty() || !fs::exists(file, ignored)) return {};
  StoreManifest m = parse_manifest(store::read_text(file), file.string());
  return m.planned ? std::optional(std::move(m)) : std::nullopt;
}

void follow_precision(BackboneOptions& options, const StoreManifest* followed,
                      const StoreManifest* continued) {
  const StoreManifest* store = followed ? followed : continued;
  if (store && !options.precision) options.precision = parse_precision(store->spec.precision);
}

size_t shard_size_for(size_t stated, const StoreManifest* continued, const Extractor& extractor) {
  if (stated) return stated;
  return continued ? continued->shard_size : extractor.shard_size();
}

}  // namespace fungi
