// SPDX-License-Identifier: Apache-2.0
#include "fungi/segment/scores_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>

#include "fungi/base/error.h"
#include "fungi/base/json.h"
#include "fungi/checkpoint/file_bytes.h"

namespace fungi::segment {
namespace {

using Json = nlohmann::ordered_json;

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// [[truth, predicted, pixels], ...]
Json counts_of(const Confusion& confusion) {
  Json out = Json::array();
  for (size_t t = 0; t < confusion.classes(); ++t)
    for (size_t p = 0; p < confusion.classes(); ++p)
      if (confusion(t, p)) out.push_back({t, p, confusion(t, p)});
  return out;
}

// Nothing where the line is none of ours.
std::optional<PictureLine> parse_line(std::string_view text, size_t kinds, size_t classes) try {
  const nlohmann::json json = parse_json(text);
  PictureLine line{.id = json.at("id")};
  if (json.contains("failed")) {
    line.failure = {line.id, json.at("failed"), json.at("hint")};
    return line;
  }
  for (const auto& counts : json.at("counts")) {
    Confusion confusion(classes);
    for (const auto& one : counts) confusion.add(one.at(0), one.at(1), one.at(2));
    line.kinds.push_back(std::move(confusion));
  }
  return line.kinds.size() == kinds ? std::optional(std::move(line)) : std::nullopt;
} catch (const nlohmann::json::exception&) {
  return {};
} catch (const Error&) {
  return {};
}

}  // namespace

ScoresFile::ScoresFile(const std::filesystem::path& file, const std::string& settings, size_t kinds,
                       size_t classes, const std::function<bool(const PictureLine&)>& is_whole)
    : path_(file.string()),
      file_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666)) {
  const auto give_up = [&] {
    fail(fmt::format("cannot be written: {}", std::generic_category().message(errno)), path_,
         "check the disk, its free space and its permissions");
  };
  if (file_.number < 0) give_up();
  if (::flock(file_.number, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    fail("another program is writing this file", path_, "wait for it to end, or write elsewhere");
  const std::string head = line_of(Json::parse(settings));
  size_t kept = 0;
  if (std::filesystem::file_size(file) > 0) {
    const auto bytes = FileBytes::map(file);
    const std::string_view text = bytes->text();
    if (text.starts_with(head))
      for (kept = head.size(); kept < text.size();) {
        const size_t end = text.find('\n', kept);
        if (end == std::string_view::npos) break;
        auto line = parse_line(text.substr(kept, end - kept), kinds, classes);
        if (!line || !is_whole(*line)) break;
        lines_.push_back(std::move(*line));
        kept = end + 1;
      }
  }
  if (::ftruncate(file_.number, off_t(kept)) != 0) give_up();
  if (::lseek(file_.number, 0, SEEK_END) < 0) give_up();
  if (!kept && !write_all(file_, std::as_bytes(std::span(head)))) give_up();
}

void ScoresFile::add(const PictureLine& line) {
  Json json{{"id", line.id}};
  if (line.failure) {
    json["failed"] = line.failure->reason;
    json["hint"] = line.failure->hint;
  } else {
    json["counts"] = Json::array();
    for (const Confusion& kind : line.kinds) json["counts"].push_back(counts_of(kind));
  }
  const std::string text = line_of(json);
  if (!write_all(file_, std::as_bytes(std::span(text))))
    fail(fmt::format("cannot be written: {}", std::generic_category().message(errno)), path_,
         "check the disk and its free space");
}

}  // namespace fungi::segment
