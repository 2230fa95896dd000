// SPDX-License-Identifier: Apache-2.0
// Milliseconds of processor time per image on one thread, from a JPEG to views of 224 pixels:
// input_bench FILE.jpg [rounds]
// For tools/compare_pillow.py it decodes the files whose names it reads, a line each, and writes
// "width height" and the bytes, or "refused" and the reason: input_bench --pixels
// [--allow-truncated]
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <vector>

#include "fungi/base/error.h"
#include "fungi/input/image.h"
#include "fungi/view/view.h"

namespace {

double cpu_ms() {  // of this thread, so that a busy machine does not show
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) * 1e3 + double(now.tv_nsec) * 1e-6;
}

double best_ms(int rounds, const std::function<void()>& work) {
  double best = 1e30;
  for (int i = 0; i < rounds; ++i) {
    const double start = cpu_ms();
    work();
    best = std::min(best, cpu_ms() - start);
  }
  return best;
}

void write_pixels(const fungi::DecodeOptions& options) {
  for (std::string name; std::getline(std::cin, name);) {
    try {
      const fungi::Image image = fungi::read_image(name, options);
      std::cout << image.width << ' ' << image.height << '\n';
      std::cout.write(reinterpret_cast<const char*>(image.rgb.data()),
                      std::streamsize(image.rgb.size()));
    } catch (const fungi::Error& error) {
      std::string line = error.what();
      std::replace(line.begin(), line.end(), '\n', ' ');
      std::cout << "refused " << line << '\n';
    }
    std::cout.flush();
  }
}

}  // namespace

int main(int argc, char** argv) try {
  using namespace fungi;
  if (argc < 2) fail("expected the name of a JPEG file", "input_bench");
  if (!std::strcmp(argv[1], "--pixels")) {
    write_pixels({.allow_truncated = argc > 2 && !std::strcmp(argv[2], "--allow-truncated")});
    return 0;
  }
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 20;
  const auto bytes = read_file_bytes(argv[1]);
  const Image image = decode_image(bytes, argv[1]);
  fmt::print("{} x {} pixels, best of {}\n", image.width, image.height, rounds);
  fmt::print("{:12} {:8.3f} ms\n", "decode",
             best_ms(rounds, [&] { decode_image(bytes, argv[1]); }));
  const std::pair<const char*, ViewPlan> plans[] = {
      {"evaluation", WholeImage{}}, {"crops", ImageCrops{}}, {"patches", ImagePatches{}}};
  for (const auto& [name, plan] : plans) {
    ImageViews views(plan, {});
    std::vector<float> out(views.view_floats());
    const double ms = best_ms(rounds, [&] {
      views.open(image, 1);
      for (size_t i = 0; i < views.count(); ++i) views.write(i, out);
    });
    fmt::print("{:12} {:8.3f} ms  ({} views, {:.3f} ms each)\n", name, ms, views.count(),
               ms / double(views.count()));
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
