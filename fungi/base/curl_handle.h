// SPDX-License-Identifier: Apache-2.0
// A handle of libcurl that is freed in the end; what every request of ours has in common. Included
// where a build has libcurl (FUNGI_HAVE_CURL) and nowhere else. Internal to the library.
#pragma once

#include <curl/curl.h>

#include <algorithm>
#include <memory>
#include <string>

#include "fungi/base/error.h"

namespace fungi {

class CurlHandle {
 public:
  // loopback: no proxy stands between a machine and itself.
  explicit CurlHandle(bool loopback)
      : handle_(curl_easy_init(), curl_easy_cleanup), headers_(nullptr, curl_slist_free_all) {
    FUNGI_ASSERT(handle_ != nullptr);
    constexpr long kConnectSeconds = 15;
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_HEADEROPT, long(CURLHEADER_SEPARATE));  // a proxy does not see keys
    if (loopback) set(CURLOPT_PROXY, "");
    set(CURLOPT_USERAGENT, "fungi/" FUNGI_VERSION);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  }

  template <class Value>
  void set(CURLoption option, Value value) {
    FUNGI_ASSERT(curl_easy_setopt(handle_.get(), option, value) == CURLE_OK);
  }
  template <class Value>
  Value get(CURLINFO what) {
    Value value{};
    curl_easy_getinfo(handle_.get(), what, &value);
    return value;
  }
  void add_header(const std::string& line) {
    curl_slist* longer = curl_slist_append(headers_.get(), line.c_str());
    FUNGI_ASSERT(longer != nullptr);
    static_cast<void>(headers_.release());
    headers_.reset(longer);
    set(CURLOPT_HTTPHEADER, headers_.get());
  }

  // What went wrong, in libcurl's words, stands in `trouble`.
  CURLcode perform(std::string& trouble) {
    char words[CURL_ERROR_SIZE] = "";
    set(CURLOPT_ERRORBUFFER, words);
    const CURLcode code = curl_easy_perform(handle_.get());
    set(CURLOPT_ERRORBUFFER, nullptr);
    if (code != CURLE_OK) trouble = *words ? words : curl_easy_strerror(code);
    return code;
  }
  int status() { return int(get<long>(CURLINFO_RESPONSE_CODE)); }

  static long milliseconds(double seconds) {  // 0 would be no limit
    return long(std::clamp(seconds * 1000, 1.0, 1e9));
  }
  static void start() {  // before the first handle
    static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
    if (ready != CURLE_OK)
      fail("libcurl could not be started", "`endpoint`", curl_easy_strerror(ready));
  }

 private:
  std::unique_ptr<CURL, void (*)(CURL*)> handle_;
  std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers_;
};

}  // namespace fungi
