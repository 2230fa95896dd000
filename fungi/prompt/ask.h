// SPDX-License-Identifier: Apache-2.0
// Asks a server with the interface of OpenAI's chat completions, several requests at once, until
// each has an answer: what passes (a server that is busy, restarts or cannot be reached, a reply
// that breaks off) is tried again after growing waits, what does not is recorded.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fungi/prompt/http.h"
#include "fungi/prompt/replies.h"

namespace fungi {

struct AskOptions {
  size_t parallel = 4;       // requests on their way at once
  size_t tries = 6;          // of each request
  double first_wait = 1;     // seconds before the second try; twice as long each time,
  double longest_wait = 60;  // until this; a server's Retry-After takes its place
  const std::atomic<bool>* stop = nullptr;  // once set nothing more is sent; answers are waited for
  std::function<void(size_t done, size_t total, size_t failed)> progress = {};  // one at a time
  std::function<void(const std::string&)> note = {};  // of the first thing that is tried again
};

struct AskResult {
  size_t requests = 0;
  size_t earlier = 0;                       // answered before, and not asked again
  size_t answered = 0, failed = 0;          // now
  size_t left = 0;                          // neither, since the run was stopped
  std::vector<std::string> first_troubles;  // of requests that failed, the first few
};

// Every answer is in the file before the next one is awaited. Errors: earlier replies to other
// requests, a server that refuses the key or knows nothing of this work, or that answers nothing at
// all any more; replies so far stay, and the same call goes on from there.
AskResult ask(const Prompts& prompts, ReplyFile& file, const OpenSession& open, const ApiKey& key,
              const AskOptions& options = {});

}  // namespace fungi
