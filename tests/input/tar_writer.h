// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fungi::testing {

// Archives as libarchive writes them.
class TarWriter {
 public:
  // `filter`: libarchive's name of a compression; a name that ends in .gz needs none.
  explicit TarWriter(const std::filesystem::path& file, const char* filter = nullptr)
      : archive_(archive_write_new()) {
    archive_write_set_format_gnutar(archive_);
    if (file.extension() == ".gz") archive_write_add_filter_gzip(archive_);
    if (filter) archive_write_add_filter_by_name(archive_, filter);
    EXPECT_EQ(archive_write_open_filename(archive_, file.c_str()), ARCHIVE_OK);
  }
  ~TarWriter() {
    archive_write_close(archive_);
    archive_write_free(archive_);
  }
  TarWriter(const TarWriter&) = delete;
  TarWriter& operator=(const TarWriter&) = delete;

  void file(const std::string& name, const std::vector<uint8_t>& content) {
    put(name, content, [](archive_entry*) {});
  }
  void text(const std::string& name, std::string_view content) {
    file(name, {content.begin(), content.end()});
  }
  void hard(const std::string& name, const char* target) {
    put(name, {}, [&](archive_entry* e) { archive_entry_set_hardlink(e, target); });
  }
  void soft(const std::string& name, const char* target) {
    put(name, {}, [&](archive_entry* e) {
      archive_entry_set_filetype(e, AE_IFLNK);
      archive_entry_set_symlink(e, target);
    });
  }

 private:
  template <class Link>
  void put(const std::string& name, const std::vector<uint8_t>& content, const Link& link) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, la_int64_t(content.size()));
    link(entry);
    EXPECT_EQ(archive_write_header(archive_, entry), ARCHIVE_OK) << archive_error_string(archive_);
    archive_write_data(archive_, content.data(), content.size());
    archive_entry_free(entry);
  }

  archive* archive_;
};

}  // namespace fungi::testing
