// SPDX-License-Identifier: Apache-2.0
// Clients of `fungi serve` on loopback: so many connections, each of which asks, waits for the
// answer and asks again, for so many seconds or so many requests. Prints one line of JSON:
// requests per second, quantiles of the time to an answer, how many of each status, and the
// server's memory before and after as its /metrics tells it.
// serve_bench PORT CLIENTS SECONDS MOST-REQUESTS rows STORE ROWS [K [EFFORT]]
// serve_bench PORT CLIENTS SECONDS MOST-REQUESTS files STORE FEATURES FOLDER
// serve_bench make STORE ROWS COLUMNS: a store of rows around 1000 centres, to be searched.
//
// bench/serve_speed runs it as docs/performance.md states.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fungi/base/random.h"
#include "fungi/store/writer.h"

namespace {

using Clock = std::chrono::steady_clock;

class Connection {
 public:
  explicit Connection(uint16_t port) : port_(port) {}
  ~Connection() { drop(); }
  // The status, and the body where it is wanted; 0: no answer came.
  int ask(const std::string& request, std::string* body = nullptr) {
    if (socket_ < 0 && !open()) return 0;
    size_t sent = 0;
    while (sent < request.size()) {
      const ssize_t n =
          ::send(socket_, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return drop(), 0;
      sent += size_t(n);
    }
    std::string answer;
    char buffer[16384];
    for (;;) {
      if (const size_t head = answer.find("\r\n\r\n"); head != std::string::npos) {
        const size_t at = answer.find("Content-Length: ");
        const size_t length = at < head ? std::stoul(answer.substr(at + 16)) : 0;
        if (answer.size() >= head + 4 + length) {
          if (body) *body = answer.substr(head + 4);
          if (answer.find("Connection: close") < head) drop();
          return std::atoi(answer.c_str() + 9);
        }
      }
      const ssize_t n = ::recv(socket_, buffer, sizeof buffer, 0);
      if (n <= 0) return drop(), 0;
      answer.append(buffer, size_t(n));
    }
  }

 private:
  bool open() {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1;
    const timeval patience{120, 0};
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port_);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return true;
    drop();
    return false;
  }
  void drop() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  uint16_t port_;
  int socket_ = -1;
};

std::string post(const std::string& type, const std::string& body) {
  return "POST /v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: " + type +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::vector<std::string> file_requests(const std::string& store, const std::string& features,
                                       const std::filesystem::path& folder) {
  std::vector<std::string> requests;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    std::string body;
    for (const auto& [name, value] :
         {std::pair<std::string, std::string>("store", store), {"features", features}})
      body += "--XX\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n";
    body += "--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\n" + bytes +
            "\r\n--XX--\r\n";
    requests.push_back(post("multipart/form-data; boundary=XX", body));
    if (requests.size() == 4096) break;
  }
  return requests;
}

std::vector<std::string> row_requests(const std::string& store, size_t rows, size_t k,
                                      size_t effort) {
  std::vector<std::string> requests;
  for (size_t i = 0; i < 4096; ++i)
    requests.push_back(post(
        "application/json",
        "{\"store\":\"" + store + "\",\"row\":" + std::to_string(i * 2654435761u % rows) +
            ",\"k\":" + std::to_string(k) +
            (effort ? ",\"effort\":" + std::to_string(effort) : std::string()) + "}"));
  return requests;
}

double memory_of(uint16_t port) {
  std::string body;
  Connection(port).ask("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", &body);
  const size_t at = body.find("\nprocess_resident_memory_bytes ");
  return at == std::string::npos ? 0 : std::stod(body.substr(at + 31)) / 1e6;
}

void make_store(const std::string& folder, size_t rows, size_t columns) {
  constexpr size_t kCentres = 1000, kAround = 3;  // rows lie a third as far from theirs as those do
  const fungi::RandomStream centres(1, "centres"), around(1, "around");
  fungi::StoreSpec spec;
  spec.pipeline = "embedding", spec.precision = "f32", spec.blocks = {{"embedding", columns}};
  std::vector<fungi::StoreSample> samples;
  for (size_t i = 0; i < rows; ++i)
    samples.push_back({"row " + std::to_string(i), int64_t(i % kCentres)});
  std::vector<std::string> classes;
  for (size_t c = 0; c < kCentres; ++c) classes.push_back("class " + std::to_string(c));
  fungi::StoreWriter writer(folder, spec, {.shard_size = 65536});
  for (const fungi::StoreWork& work : writer.plan(samples, classes)) {
    fungi::StoreRows out;
    out.blocks.emplace_back(work.samples.size(), columns);
    for (size_t i = 0; i < work.samples.size(); ++i)
      for (size_t c = 0; c < columns; ++c)
        out.blocks[0](i, c) =
            float(centres.normal(work.samples[i] % kCentres * columns + c) +
                  around.normal(work.samples[i] * columns + c) / kAround);
    writer.put(work, out);
  }
  writer.finish();
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc == 5 && std::string(argv[1]) == "make")
    return make_store(argv[2], std::stoul(argv[3]), std::stoul(argv[4])), 0;
  if (argc < 8) throw std::runtime_error("see the head of bench/serve_bench.cpp for its words");
  const auto port = uint16_t(std::stoul(argv[1]));
  const size_t clients = std::min<size_t>(std::stoul(argv[2]), 1024);
  const double seconds = std::min(std::stod(argv[3]), 600.0);
  const size_t most = std::stoul(argv[4]);
  const std::string kind = argv[5];
  const auto number = [&](int i, size_t usual) { return argc > i ? std::stoul(argv[i]) : usual; };
  const std::vector<std::string> requests =
      kind == "rows" ? row_requests(argv[6], number(7, 1), number(8, 8), number(9, 0))
      : argc > 8     ? file_requests(argv[6], argv[7], argv[8])
                     : std::vector<std::string>();
  if (requests.empty()) throw std::runtime_error("there is nothing to ask");

  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::vector<double> times;
  std::map<int, size_t> statuses;
  const double before = memory_of(port);
  const auto begin = Clock::now();
  const auto since = [](Clock::time_point t) {
    return std::chrono::duration<double>(Clock::now() - t).count();
  };
  std::vector<std::thread> threads;
  for (size_t c = 0; c < clients; ++c)
    threads.emplace_back([&] {
      Connection connection(port);
      std::vector<double> own;
      std::map<int, size_t> seen;
      while (since(begin) < seconds) {
        const size_t i = next++;
        if (i >= most) break;
        const auto asked = Clock::now();
        ++seen[connection.ask(requests[i % requests.size()])];
        own.push_back(since(asked));
      }
      const std::lock_guard lock(mutex);
      times.insert(times.end(), own.begin(), own.end());
      for (const auto& [status, count] : seen) statuses[status] += count;
    });
  for (std::thread& thread : threads) thread.join();
  const double taken = since(begin);
  std::sort(times.begin(), times.end());
  const auto quantile = [&](double q) {
    return times.empty() ? 0.0 : 1e3 * times[size_t(q * double(times.size() - 1))];
  };
  std::printf("{\"clients\": %zu, \"requests\": %zu, \"seconds\": %.2f, \"per_second\": %.1f, "
              "\"p50_ms\": %.2f, \"p99_ms\": %.2f, \"most_ms\": %.2f, \"memory_before_mb\": %.1f, "
              "\"memory_after_mb\": %.1f, \"statuses\": {",
              clients, times.size(), taken, double(times.size()) / taken, quantile(0.5),
              quantile(0.99), quantile(1), before, memory_of(port));
  const char* comma = "";
  for (const auto& [status, count] : statuses)
    std::printf("%s\"%d\": %zu", std::exchange(comma, ", "), status, count);
  std::printf("}}\n");
  return statuses.size() == 1 && statuses.contains(200) ? 0 : 1;
} catch (const std::exception& e) {
  return std::fprintf(stderr, "serve_bench: %s\n", e.what()), 2;
}
