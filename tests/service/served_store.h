// SPDX-License-Identifier: Apache-2.0
// A small store of pictures made by a golden model, a service on it, and a client on loopback.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "fungi/base/descriptor.h"
#include "fungi/feature/extractor.h"
#include "fungi/input/png_write.h"
#include "fungi/service/server.h"
#include "tests/support/folder.h"

namespace fungi::test {

using Json = nlohmann::json;

inline Image stripes(size_t width, size_t height, uint8_t first, size_t every) {
  Image image{width, height, std::vector<uint8_t>(width * height * 3)};
  for (size_t i = 0; i < width * height; ++i)
    for (size_t c = 0; c < 3; ++c)
      image.rgb[3 * i + c] = uint8_t(first + 40 * c + (i / every % 2 ? 90 : 0) + i % 7);
  return image;
}

inline std::string png(const Image& image) {
  const std::vector<uint8_t> bytes = encode_png(image);
  return {bytes.begin(), bytes.end()};
}

class ServedStore {
 public:
  static constexpr size_t kPerClass = 6;

  ServedStore() {
    for (size_t i = 0; i < kPerClass; ++i) {
      folder_.write("pictures/ant/" + std::to_string(i) + ".png",
                    png(stripes(40, 32, uint8_t(10 * i), 3 + i)));
      folder_.write("pictures/bee/" + std::to_string(i) + ".png",
                    png(stripes(32, 40, uint8_t(100 + 9 * i), 11 + i)));
    }
    extract("store");
  }

  // A store that is there grows by the pictures that are new.
  void extract(const std::string& name) const {
    Pool pool(2);
    ExtractorOptions options;
    options.objectives = {"kl", "dino:width=16,local_crops=2"};
    BackboneOptions backbone;
    backbone.stated_facts["heads"] = "4";
    Extractor extractor = Extractor::open(model(), std::move(options), pool, backbone);
    const auto data = open_dataset(pictures());
    StoreWriter writer(folder_ / name, extractor.spec(), {.shard_size = 4});
    extract_to_store(extractor, *data, writer);
  }

  std::filesystem::path model() const {
    return FUNGI_GOLDEN_DIR "/backbone/timm_vit/model.safetensors";
  }
  std::filesystem::path pictures() const { return folder_ / "pictures"; }
  std::filesystem::path store() const { return folder_ / "store"; }
  const TemporaryFolder& folder() const { return folder_; }

  ServiceOptions options() const {
    return {.stores = {{.path = store(), .data = pictures()}}, .threads = 2};
  }

 private:
  TemporaryFolder folder_{place_in_memory()};
};

// Made once: it takes a second.
inline const ServedStore& made() {
  static const ServedStore store;
  return store;
}

inline Json json_of(const WebAnswer& answer, int status = 200) {
  EXPECT_EQ(answer.status, status) << answer.body;
  Json body = Json::parse(answer.body, nullptr, false);
  EXPECT_FALSE(body.is_discarded()) << answer.body;
  if (status >= 400) {
    EXPECT_FALSE(body["error"]["message"].get<std::string>().empty());
  }
  return body;
}

inline std::string picture() { return png(stripes(50, 44, 77, 5)); }

inline WebRequest get(const std::string& path, std::multimap<std::string, std::string> query = {}) {
  return {.path = path, .query = std::move(query)};
}

inline WebRequest post(const std::string& path, const std::string& body,
                       const std::string& type = "application/json") {
  return {.method = "POST", .path = path, .content_type = type, .body = body};
}

// A body of multipart/form-data with one file, and fields.
inline std::string form(const std::string& file, const std::string& name,
                        const std::map<std::string, std::string>& fields = {}) {
  std::string out;
  for (const auto& [key, value] : fields)
    out += "--XX\r\nContent-Disposition: form-data; name=\"" + key + "\"\r\n\r\n" + value + "\r\n";
  out += "--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + name +
         "\"\r\nContent-Type: application/octet-stream\r\n\r\n" + file + "\r\n--XX--\r\n";
  return out;
}
inline const std::string kForm = "multipart/form-data; boundary=XX";

// One connection that says what it is told.
class Client {
 public:
  explicit Client(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ =
        ::connect(socket_.number, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  bool connected() const { return connected_; }
  bool send(const std::string& bytes) {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t n =
          ::send(socket_.number, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return false;
      sent += size_t(n);
    }
    return true;
  }
  // The head and the body of an answer; empty where there is none in time.
  std::string receive(double seconds = 20) {
    std::string out;
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    for (;;) {
      if (const size_t head = out.find("\r\n\r\n"); head != std::string::npos) {
        const size_t at = out.find("Content-Length: ");
        const size_t length = at < head ? std::stoul(out.substr(at + 16)) : 0;
        if (out.size() >= head + 4 + length) return out;
      }
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          until - std::chrono::steady_clock::now());
      pollfd p{socket_.number, POLLIN, 0};
      if (left.count() <= 0 || ::poll(&p, 1, int(left.count())) <= 0) return "";
      char buffer[8192];
      const ssize_t n = ::recv(socket_.number, buffer, sizeof buffer, 0);
      if (n <= 0) return out;
      out.append(buffer, size_t(n));
    }
  }
  std::string ask(const std::string& method, const std::string& target,
                  const std::string& body = "", const std::string& headers = "") {
    std::string head = method + " " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + headers;
    if (!body.empty() || method == "POST")
      head += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    return send(head + "\r\n" + body) ? receive() : "";
  }
  // True where the other side has ended it.
  bool ended(double seconds) {
    pollfd p{socket_.number, POLLIN, 0};
    char byte;
    return ::poll(&p, 1, int(seconds * 1000)) > 0 && ::recv(socket_.number, &byte, 1, 0) <= 0;
  }

 private:
  Descriptor socket_;
  bool connected_ = false;
};

inline int status_of(const std::string& answer) {
  return answer.size() > 12 ? std::stoi(answer.substr(9, 3)) : 0;
}

}  // namespace fungi::test
