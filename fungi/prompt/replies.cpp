// SPDX-License-Identifier: Apache-2.0
#include "fungi/prompt/replies.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <span>
#include <system_error>
#include <unordered_map>

#include "fungi/base/descriptor.h"
#include "fungi/base/json.h"
#include "fungi/base/random.h"
#include "fungi/store/text.h"

namespace fungi {
namespace {

using store::Json;

// A member of an object, or of nothing.
const Json* member(const Json* value, const char* name) {
  if (!value || !value->is_object()) return nullptr;
  const auto at = value->find(name);
  return at == value->end() || at->is_null() ? nullptr : &*at;
}

std::string string_or(const Json* value, std::string otherwise) {
  return value && value->is_string() ? value->get<std::string>() : otherwise;
}

std::optional<std::string> completion_text(const Json& body) {
  const Json* choices = member(&body, "choices");
  if (!choices || !choices->is_array() || choices->empty()) return {};
  const Json* message = member(&choices->at(0), "message");
  if (!message || !message->is_object()) return {};
  const Json* content = member(message, "content");
  if (content && !content->is_string()) return {};
  return string_or(content, "");
}

std::string refusal_text(const Json* body) {
  const Json* error = member(body, "error");
  for (const Json* words :
       {member(error, "message"), error, member(body, "message"), member(body, "detail")})
    if (words && words->is_string()) return words->get<std::string>();
  return "";
}

std::optional<Json> parse_object(std::string_view text) {
  try {
    Json value = store::parse(text, "");
    if (value.is_object()) return value;
  } catch (const Error&) {
  }
  return {};
}

PromptReply parse_reply(std::string_view line, const std::string& place) {
  const auto refuse = [&](const char* what) {
    fail(what, place,
         "a reply has custom_id and response, as in the output of OpenAI's batches: take the line "
         "out, or fetch the file again");
  };
  const std::optional<Json> object = parse_object(line);
  if (!object) refuse("expected the JSON object of a reply, found something else");
  const Json& json = *object;
  PromptReply reply;
  const Json* id = member(&json, "custom_id");
  if (!id || !id->is_string()) refuse("expected a reply with a custom_id, found none");
  reply.id = store::from_json_string(id->get<std::string>());
  reply.request = string_or(member(&json, "request_checksum"), "");
  const Json *response = member(&json, "response"), *error = member(&json, "error");
  if (!response && !error) refuse("expected a response or an error, found neither");
  const Json *status = member(response, "status_code"), *body = member(response, "body");
  const bool good = !status || (status->is_number() && *status == 200);
  if (!error && good && body) reply.text = completion_text(*body);
  if (!reply.text) {
    reply.trouble = string_or(member(error, "message"), refusal_text(body));
    if (reply.trouble.empty())
      reply.trouble = good ? "no answer in the reply" : "status " + status->dump();
  }
  return reply;
}

// The whole lines of a file that may end in half a line: `whole` is where that begins.
ReplyList parse_replies(const std::string& text, const std::string& name, size_t& whole) {
  ReplyList list;
  std::unordered_map<std::string, size_t> places;
  size_t line = 0;
  for (whole = 0; whole < text.size();) {
    ++line;
    const size_t end = text.find('\n', whole);
    const std::string_view words = std::string_view(text).substr(whole, end - whole);
    if (end == std::string::npos && !parse_object(words)) {
      list.cut = true;
      break;
    }
    whole = end == std::string::npos ? text.size() : end + 1;
    if (words.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    PromptReply reply = parse_reply(words, fmt::format("{}, line {}", name, line));
    reply.line = line;
    const auto [at, fresh] = places.emplace(reply.id, list.replies.size());
    if (fresh) {
      list.replies.push_back(std::move(reply));
      continue;
    }
    PromptReply& there = list.replies[at->second];
    if (there.text && reply.text)
      fail(
          fmt::format("'{}' is answered twice, in the lines {} and {}", reply.id, there.line, line),
          name, "keep the replies of one run in a file");
    if (!there.text) there = std::move(reply);
  }
  return list;
}

}  // namespace

std::optional<std::string> completion_text(const std::string& body) {
  return completion_text(Json(parse_json(body)));
}

std::string refusal_text(const std::string& body) {
  const Json json = parse_json(body);
  return refusal_text(&json);
}

std::string request_checksum(const PromptRequest& request) {
  return fmt::format("{:016x}", fnv1a64(request.body));
}

ReplyList read_replies(const std::filesystem::path& file) {
  size_t whole = 0;
  return parse_replies(store::read_text(file), file.string(), whole);
}

struct ReplyFile::State {
  std::string name;
  Descriptor file;
  std::vector<PromptReply> earlier;

  [[noreturn]] void give_up(const char* what) const {
    fail(fmt::format("cannot {}: {}", what, std::generic_category().message(errno)), name,
         "check the folder, its permissions and the free space; replies that are in the file stay");
  }
  void add(const PromptRequest& request, Json response, Json error) {
    const std::string line = store::dump(Json{{"custom_id", store::to_json_string(request.id)},
                                              {"request_checksum", request_checksum(request)},
                                              {"response", std::move(response)},
                                              {"error", std::move(error)}}) +
                             "\n";
    if (!write_all(file, std::as_bytes(std::span(line)))) give_up("be written");
  }
};

ReplyFile::ReplyFile(const std::filesystem::path& path) : state_(new State{path.string(), {}, {}}) {
  State& s = *state_;
  s.file = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (s.file.number < 0) s.give_up("be opened");
  if (::flock(s.file.number, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    fail("another program is writing this file", s.name, "wait for it to end, or write to another");
  const std::string text = store::read_text(path);
  size_t whole = 0;
  s.earlier = parse_replies(text, s.name, whole).replies;
  // Half a line of somebody else's file is not ours to cut off.
  constexpr std::string_view kOurs = "{\"custom_id\":";
  if (const auto half = std::string_view(text).substr(whole);
      !half.starts_with(kOurs) && !kOurs.starts_with(half))
    fail("expected a file of replies, found one that ends in something else", s.name, "name another file");
  if (whole < text.size() && ::ftruncate(s.file.number, off_t(whole)) != 0) s.give_up("be mended");
  if (whole > 0 && text[whole - 1] != '\n' && !write_all(s.file, std::as_bytes(std::span("\n", 1))))
    s.give_up("be written");
}

ReplyFile::ReplyFile(ReplyFile&&) noexcept = default;
ReplyFile::~ReplyFile() {
  if (state_) ::fsync(state_->file.number);
}

const std::vector<PromptReply>& ReplyFile::earlier() const { return state_->earlier; }
const std::string& ReplyFile::name() const { return state_->name; }

void ReplyFile::add_answer(const PromptRequest& request, const std::string& body) {
  state_->add(request, {{"status_code", 200}, {"body", Json::parse(body)}}, nullptr);
}

void ReplyFile::add_failure(const PromptRequest& request, int status, const std::string& trouble) {
  state_->add(request, status ? Json{{"status_code", status}} : Json(nullptr),
              Json{{"message", store::to_json_string(trouble)}});
}

}  // namespace fungi
