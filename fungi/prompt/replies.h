// SPDX-License-Identifier: Apache-2.0
// Replies of a language model, one line of JSON each, in the shape of the files that OpenAI's batch
// service gives back: custom_id, response with status_code and body, error. Lines that we write
// also have the checksum of their request, so that no reply is taken for that to another one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fungi/base/error.h"
#include "fungi/prompt/requests.h"

namespace fungi {

struct PromptReply {
  std::string id;                   // of the test row
  std::optional<std::string> text;  // nothing: the request failed, `trouble` says why
  std::string trouble;
  std::string request;  // its checksum; empty where the file does not tell
  size_t line = 0;
};

struct ReplyList {
  std::vector<PromptReply> replies;  // one of each request: the answer where there is one
  bool cut = false;                  // the last line is half a line, and was left out
};

// Errors, naming the line: no such file, what is no reply, two answers to one request.
ReplyList read_replies(const std::filesystem::path& file);

// What a chat completion says; nothing where the body is none. A model that says nothing: "".
std::optional<std::string> completion_text(const std::string& body);
// Why a server refuses, in its own words if there are some.
std::string refusal_text(const std::string& body);

std::string request_checksum(const PromptRequest& request);

// A file of replies that grows by whole lines: what is in it stays whatever happens next. One
// program writes to it at a time.
class ReplyFile {
 public:
  // Makes the file if there is none; half a line at its end, which a kill leaves, goes. Errors as
  // those of read_replies(), and: it cannot be written, or another program does it.
  explicit ReplyFile(const std::filesystem::path& path);
  ReplyFile(ReplyFile&&) noexcept;
  ~ReplyFile();

  const std::vector<PromptReply>& earlier() const;  // replies that were there
  const std::string& name() const;
  // From one thread at a time. `body`: JSON of the server.
  void add_answer(const PromptRequest& request, const std::string& body);
  void add_failure(const PromptRequest& request, int status, const std::string& trouble);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fungi
