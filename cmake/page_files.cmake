# SPDX-License-Identifier: Apache-2.0
# Writes the files of the page, and openapi.json, as arrays of C++: cmake -DWEB= -DAPI= -DFILES= -DOUT= -P page_files.cmake
set(TYPE_html "text/html; charset=utf-8")
set(TYPE_css "text/css; charset=utf-8")
set(TYPE_js "text/javascript; charset=utf-8")
set(TYPE_json "application/json")
set(TYPE_svg "image/svg+xml")
set(TYPE_png "image/png")
set(TYPE_webp "image/webp")
set(TYPE_webmanifest "application/manifest+json")
set(arrays "")
set(table "")
set(number 0)
foreach(file ${FILES} ${API})
  if(file STREQUAL "${API}")
    set(path openapi.json)
  else()
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${WEB} OUTPUT_VARIABLE path)
  endif()
  cmake_path(GET file EXTENSION LAST_ONLY extension)
  string(SUBSTRING ${extension} 1 -1 extension)
  file(READ ${file} bytes HEX)
  string(LENGTH "${bytes}" size)
  math(EXPR size "${size} / 2")
  string(REPEAT . 96 line)
  string(REGEX REPLACE "(${line})" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" bytes "${bytes}")
  string(REPLACE "\n" "\"\n\"" bytes "${bytes}")
  string(APPEND arrays "constexpr char kFile${number}[] =\n\"${bytes}\";\n")
  string(APPEND table "    {\"/${path}\", \"${TYPE_${extension}}\", {kFile${number}, ${size}}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUT} "// Made by cmake/page_files.cmake.
#include \"fungi/service/page_files.h\"

namespace fungi::service {
namespace {

${arrays}
constexpr PageFile kFiles[] = {
${table}};

}  // namespace

std::span<const PageFile> page_files() { return kFiles; }

}  // namespace fungi::service
")
