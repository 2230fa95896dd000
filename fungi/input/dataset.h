// SPDX-License-Identifier: Apache-2.0
// A data set: a fixed, deterministic order of samples with stable ids and labels, whose content is
// read on demand. Opening reads names and labels only. Everything const is safe to call from
// several threads.
//
// A data set of your own derives from Dataset, fills ids_, labels_ and class_names_, and overrides
// read() or decode(), which the extractor calls from all threads of its pool. An Error from either,
// and std::bad_alloc, is the sample's: it is recorded as failed, and the run goes on. Exhausted
// (image.h) and any other exception end the run; what was saved stays, and it can be repeated.
// Pictures and texts that are in memory need no class: memory_dataset().
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/input/sample.h"

namespace fungi {

// Of sounds: the same kinds but cifar and idx, with files of sounds for images, and the layouts of
// two data sets: ESC-50 (its folder with meta/esc50.csv and audio, or the list: labels are the
// categories, folds are folds) and SpeechCommands (testing_list.txt and validation_list.txt beside
// folders of classes decide which of them `split` has: train, validation or test). Of texts:
// `classes` and `flat` are .txt files, or one; `list` is a table whose cells are the
// texts, or plain lines; id = the line where a row begins, counted from 1; `tar` has <key>.txt.
enum class DatasetKind {
  automatic,  // told by the path: see open_dataset
  classes,    // folder/<class>/**/<image>; order and numbers of torchvision's ImageFolder; folders
              // without any image are no classes; id = path below the folder
  flat,   // every image below the folder (or one image file), without labels; id = path below the
          // folder
  list,   // .csv, .tsv, .jsonl or plain text naming files and labels (docs/formats.md); id = the
          // path as the list writes it
  tar,    // .tar[.gz|.zst|...] or a folder of them; <key>.jpg with <key>.cls or <key>.json, each of
          // them a file or a link to one of the archive; without any label the top folders are the
          // classes, if there are several; id = key
  cifar,  // CIFAR-10/100 binary version, a file or its folder; id = <file>/<number>
  idx,    // MNIST's idx3-ubyte images beside idx1-ubyte labels, each plain or gzipped; id =
          // <prefix>/<number>
};

const char* to_string(DatasetKind kind);
DatasetKind parse_dataset_kind(std::string_view name);  // throws Error naming the choices

struct DatasetOptions {
  DatasetKind kind = DatasetKind::automatic;
  SampleKind samples = SampleKind::image;  // what the model looks at (Modality::kind())
  // E.g. "train". A published set (published.h): the official one, which must be named, or "all". A
  // folder of images: the sub-folder of that name; a folder of CIFAR or IDX files: those of that
  // split; anything else has none: an Error. Empty: everything.
  std::string split = {};
  // Number of a class = its place in this list, e.g. the list of the training split; by name, or,
  // where the source only has numbers, by number. Another one is an Error. Empty: the sorted names
  // found here, or those that the source lists.
  std::vector<std::string> class_names = {};
  // Of a list of texts: the columns, by name (in JSON lines by key) or, in tables, by number
  // from 1. Empty: guessed from the header or from what the first lines look like, and a note says
  // how.
  std::string text_column = {};
  std::string label_column = {};  // "none": no labels
  std::string id_column = {};     // empty or "none": the number of the line is the id

  // Of lists of files: samples whose fold (a column) is this one, or with "!1" is another.
  std::string fold = {};
  // Of sounds: how much of each is decoded, in seconds from its beginning; 0: all of it
  // (Extractor::data() tells what the model looks at).
  double seconds = 0;
  // Of sounds: each file is several samples of so many seconds, `hop` seconds apart (0: as long as
  // the window), with ids "file@12.0". The last one reaches the end, and may be shorter.
  double window = 0, hop = 0;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  size_t size() const noexcept { return ids_.size(); }
  // Error where there is no such sample.
  const std::string& id(size_t i) const { return i < ids_.size() ? ids_[i] : fail_range(i); }
  int label(size_t i) const {  // -1: none
    if (i >= labels_.size()) fail_range(i);
    return labels_[i];
  }
  // Names of the classes by number; empty when there are no labels or the source gives bare
  // numbers.
  const std::vector<std::string>& class_names() const noexcept { return class_names_; }
  DatasetKind kind() const noexcept { return kind_; }
  SampleKind samples() const noexcept { return samples_; }
  // Files that were left out since they are no such samples: lower-case extension (or "") -> how
  // many.
  const std::map<std::string, size_t>& ignored() const noexcept { return ignored_; }

  // What else a user should know of what was found, one line each.
  const std::vector<std::string>& notes() const noexcept { return notes_; }

  // The stored bytes of a sample: an encoded image file, the raw record of CIFAR and IDX, a text.
  virtual std::vector<uint8_t> read(size_t i) const = 0;
  // The sample that those bytes hold; unless overridden an image, the text of a whole file, or a
  // sound. Of a long sound read() may give nothing: decode() then reads what it needs.
  // Throws Error, with the id as its place, when they hold none.
  virtual Sample decode(size_t i, std::span<const uint8_t> bytes,
                        const DecodeOptions& options = {}) const;
  Image image(size_t i, const DecodeOptions& options = {}) const;  // both in one; Error: no image
  // How many bytes are stored for a sample, without reading them; nothing where that cannot be told
  // (the file is gone) or says nothing (records of equal size).
  virtual std::optional<uint64_t> stored_bytes(size_t i) const;
  // What a store keeps to notice that a sample's content changed under the same id: another text,
  // and the sample is extracted again. Empty: nothing is known, and a row stays. Default:
  // stored_bytes() in digits; of texts a sum of what read() gives. A time of modification would
  // differ between copies of the same data.
  virtual std::string key(size_t i) const;
  // Which of several archives a sample lies in, in the order of the data set. Work that is shared
  // keeps an archive together, since compressed ones can only be read forwards.
  virtual size_t container(size_t i) const;
  // Exhausted where the file or folder that was opened is no longer there, or another one has its
  // name (an empty one, where a disk was): asked when a sample could not be read, and only then,
  // since not every file system numbers its files for ever. Of a list it is the list itself.
  void require_present() const;

 protected:
  Dataset() = default;
  // The file that holds nothing but sample i; empty: there is none.
  virtual std::filesystem::path file(size_t i) const;
  // Of a file that is one sample: what read() gives.
  std::vector<uint8_t> read_sample(const std::filesystem::path& file) const;
  // The sound that the bytes hold, or where there are none file(i).
  Sound decode_part(size_t i, std::span<const uint8_t> bytes, double begin, double seconds,
                    const DecodeOptions& options) const;

  // Checks what every data set promises: at least one sample, a label (-1: none) for each, no id
  // twice. Called last by each opener.
  void finish(DatasetKind kind, const std::filesystem::path& place);

  std::vector<std::string> ids_;
  std::vector<int> labels_;
  std::vector<std::string> class_names_;
  std::map<std::string, size_t> ignored_;
  std::vector<std::string> notes_;
  SampleKind samples_ = SampleKind::image;
  double seconds_ = 0;  // DatasetOptions::seconds

 private:
  friend class SoundWindows;
  [[noreturn]] const std::string& fail_range(size_t i) const;
  DatasetKind kind_ = DatasetKind::automatic;
  std::filesystem::path place_;
  std::optional<std::pair<uint64_t, uint64_t>> identity_;  // of the place: device and number
};

// Opens what lies at `path`. Automatic choice, for a file: by its name (.csv .tsv .jsonl .ndjson
// .txt .lst; .tar*; .bin; *idx3-ubyte*; an image); for a folder: images anywhere below -> classes
// if some lie in sub-folders, else flat; no images -> tar, CIFAR or IDX files directly inside. In a
// folder with both class folders and loose images the automatic choice keeps the loose ones, with
// label -1; `classes` leaves them out, as torchvision does. Hidden files are never seen. Image
// files of formats that cannot be decoded, links that lead nowhere and files beyond kLargestFile
// are samples too: they fail one by one, with a reason, rather than vanish.
//
// Of texts: a file by its name (.csv .tsv .tab .jsonl .ndjson, plain lines .txt .lst, .tar*), `-`
// for plain lines of standard input, a pipe likewise; a folder with lists directly inside -> the
// one of `split`, or the only one; else .txt files anywhere below -> classes or flat; else tar. A
// list is not held in memory: opening it goes through it once, and a text is read when it is asked
// for. A file that changes meanwhile ends the run (Exhausted).
std::unique_ptr<Dataset> open_dataset(const std::filesystem::path& path,
                                      const DatasetOptions& options = {});

// Pictures or texts that are in memory; the key of each is a sum of its pixels or bytes. labels:
// one for each, -1 for none, below the number of class names where there are any; empty: no labels.
// Errors: no pictures, counts that differ, an id twice, a label without class, pixels of another
// number than width x height x 3, a text with NUL or that is no UTF-8.
std::unique_ptr<Dataset> memory_dataset(std::vector<std::string> ids, std::vector<Image> images,
                                        std::vector<int> labels = {},
                                        std::vector<std::string> class_names = {});
std::unique_ptr<Dataset> memory_dataset(std::vector<std::string> ids, std::vector<Text> texts,
                                        std::vector<int> labels = {},
                                        std::vector<std::string> class_names = {});
std::unique_ptr<Dataset> memory_dataset(std::vector<std::string> ids, std::vector<Sound> sounds,
                                        std::vector<int> labels = {},
                                        std::vector<std::string> class_names = {});

}  // namespace fungi
