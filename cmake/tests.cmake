# SPDX-License-Identifier: Apache-2.0
# One test program per folder of tests/, each named after the folder of fungi/ that it mirrors.
find_package(GTest REQUIRED)
include(GoogleTest)
add_library(fungi-test-support INTERFACE)
target_link_libraries(fungi-test-support INTERFACE fungi::fungi fmt::fmt nlohmann_json::nlohmann_json GTest::gtest_main)
# Tests run in the root of the repository and name what they need from there: what is compiled holds no absolute path, so
# that a compiler cache serves every clone.
cmake_path(RELATIVE_PATH PROJECT_BINARY_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE FUNGI_BUILT)
target_compile_definitions(fungi-test-support INTERFACE
  FUNGI_GOLDEN_DIR="tests/golden" FUNGI_SOURCE_DIR="." FUNGI_BINARY="${FUNGI_BUILT}/fungi")
# Building the tests takes longer than running them: one set of precompiled headers serves all programs, and -O1 does.
set(FUNGI_TEST_HEADERS <gtest/gtest.h> <fmt/format.h> <nlohmann/json.hpp> <algorithm> <filesystem> <fstream> <functional> <map> <random> <string> <vector>)
foreach(room base comm kernel checkpoint token hub input view backbone search objective projection pca store feature retrieve evaluate prompt segment report service app)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${room}/*_test.cpp)
  if(sources)
    add_executable(test_${room} ${sources})
    target_link_libraries(test_${room} PRIVATE fungi-test-support)
    target_compile_options(test_${room} PRIVATE $<$<CONFIG:Release>:-O1>)
    if(room STREQUAL base)
      target_precompile_headers(test_base PRIVATE ${FUNGI_TEST_HEADERS})
    else()
      target_precompile_headers(test_${room} REUSE_FROM test_base)
    endif()
    gtest_discover_tests(test_${room} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} DISCOVERY_MODE PRE_TEST TEST_PREFIX ${room}. PROPERTIES TIMEOUT 300)
  endif()
endforeach()
# What a build without HDF5 answers: its own copy of that one file stands before the library's.
add_executable(test_without_hdf5 ${PROJECT_SOURCE_DIR}/tests/store/export_without_hdf5.cpp ${PROJECT_SOURCE_DIR}/fungi/store/export_hdf5.cpp)
target_link_libraries(test_without_hdf5 PRIVATE fungi-test-support)
target_compile_options(test_without_hdf5 PRIVATE $<$<CONFIG:Release>:-O1>)
target_precompile_headers(test_without_hdf5 REUSE_FROM test_base)
gtest_discover_tests(test_without_hdf5 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} DISCOVERY_MODE PRE_TEST TEST_PREFIX store. PROPERTIES TIMEOUT 300)
# And without AVIF, HEIC and MATLAB files.
add_executable(test_without_formats ${PROJECT_SOURCE_DIR}/tests/input/formats_left_out.cpp
  ${PROJECT_SOURCE_DIR}/fungi/input/avif.cpp ${PROJECT_SOURCE_DIR}/fungi/input/heif.cpp ${PROJECT_SOURCE_DIR}/fungi/input/matio.cpp)
target_link_libraries(test_without_formats PRIVATE fungi-test-support)
target_compile_options(test_without_formats PRIVATE $<$<CONFIG:Release>:-O1>)
target_precompile_headers(test_without_formats REUSE_FROM test_base)
gtest_discover_tests(test_without_formats WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} DISCOVERY_MODE PRE_TEST TEST_PREFIX input. PROPERTIES TIMEOUT 300)
# And without libcurl.
add_executable(test_without_curl ${PROJECT_SOURCE_DIR}/tests/prompt/ask_without_curl.cpp ${PROJECT_SOURCE_DIR}/fungi/prompt/http_curl.cpp
  ${PROJECT_SOURCE_DIR}/fungi/hub/http_get.cpp)
target_link_libraries(test_without_curl PRIVATE fungi-test-support)
target_compile_options(test_without_curl PRIVATE $<$<CONFIG:Release>:-O1> -UFUNGI_HAVE_CURL)
target_precompile_headers(test_without_curl REUSE_FROM test_base)
gtest_discover_tests(test_without_curl WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} DISCOVERY_MODE PRE_TEST TEST_PREFIX prompt. PROPERTIES TIMEOUT 300)
# And without cpp-httplib.
add_executable(test_without_server ${PROJECT_SOURCE_DIR}/tests/service/without_server.cpp
  ${PROJECT_SOURCE_DIR}/fungi/service/http_httplib.cpp ${PROJECT_SOURCE_DIR}/fungi/service/tls.cpp)
target_link_libraries(test_without_server PRIVATE fungi-test-support)
target_compile_options(test_without_server PRIVATE $<$<CONFIG:Release>:-O1> -UFUNGI_HAVE_HTTPLIB)
target_precompile_headers(test_without_server REUSE_FROM test_base)
gtest_discover_tests(test_without_server WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} DISCOVERY_MODE PRE_TEST TEST_PREFIX service. PROPERTIES TIMEOUT 300)
if(TARGET test_report)
  add_dependencies(test_report fungi-cli)
endif()
if(TARGET test_app)
  add_dependencies(test_app fungi-cli)
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
# Several processes: by mpirun, on hosts of their own (as root), and as jobs of a queue.
foreach(name ranks hosts cluster)
  if(NOT FUNGI_SANITIZE AND NOT FUNGI_EMULATE_TILES AND NOT DEFINED ENV{FUNGI_ISA})
    add_test(NAME app.${name} COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/app/${name}.py $<TARGET_FILE:fungi-cli> ${PROJECT_SOURCE_DIR})
    set_tests_properties(app.${name} PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77)
  endif()
endforeach()
add_test(NAME house.layers COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/check_layers.py ${PROJECT_SOURCE_DIR})
add_test(NAME house.duplicates COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/check_duplicates.py ${PROJECT_SOURCE_DIR})
add_test(NAME house.words COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/check_words.py ${PROJECT_SOURCE_DIR})
if(NOT FUNGI_SANITIZE)
  add_test(NAME house.consumer COMMAND ${PROJECT_SOURCE_DIR}/tests/consumer/run.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR}/tests/consumer)
endif()

# The numbered programs of examples/, run on a tiny model and the demo's pictures.
file(GLOB examples CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.cpp)
foreach(source ${examples})
  get_filename_component(name ${source} NAME_WE)
  add_executable(example_${name} ${source})
  set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
  target_link_libraries(example_${name} PRIVATE fungi::fungi)
endforeach()
set(tiny ${PROJECT_SOURCE_DIR}/tests/golden/backbone/timm_vit/model.safetensors)
set(pictures ${PROJECT_SOURCE_DIR}/tests/golden/input/images)
add_test(NAME examples.01_embed COMMAND example_01_embed ${tiny} ${pictures}/filtered.png heads=4)
add_test(NAME examples.02_neighbours COMMAND example_02_neighbours ${tiny} ${PROJECT_SOURCE_DIR}/demo/images/test ${PROJECT_SOURCE_DIR}/demo/images/test heads=4)
add_test(NAME examples.03_own_objective COMMAND example_03_own_objective ${tiny} ${PROJECT_SOURCE_DIR}/demo/images/test heads=4)
set(split ${PROJECT_BINARY_DIR}/examples/split)
# Twice: the second run resumes. Paths are arguments of the shell, never its text: they may hold spaces.
add_test(NAME examples.04_test_split COMMAND sh -c [=[rm -rf "$4" && "$0" "$@" && "$0" "$@"]=]
  $<TARGET_FILE:example_04_test_split> ${tiny} ${PROJECT_SOURCE_DIR}/demo/images/test ${PROJECT_SOURCE_DIR}/demo/images/test ${split} heads=4)
add_test(NAME examples.06_own_modality COMMAND example_06_own_modality ${PROJECT_SOURCE_DIR}/tests/golden/backbone/bert)
set_tests_properties(examples.06_own_modality PROPERTIES PASS_REGULAR_EXPRESSION "24 of 24")
# Twice: the second run finds the store.
add_test(NAME examples.05_service COMMAND sh -c [=[rm -rf "$3" && "$0" "$@" && "$0" "$@"]=]
  $<TARGET_FILE:example_05_service> ${tiny} ${PROJECT_SOURCE_DIR}/demo/images/test ${PROJECT_BINARY_DIR}/examples/service heads=4)

# Twice: the second run finds the memory.
add_test(NAME examples.07_segment COMMAND sh -c [=[rm -rf "$5" && "$0" "$@" && "$0" "$@"]=]
  $<TARGET_FILE:example_07_segment> ${tiny} ${PROJECT_SOURCE_DIR}/tests/golden/segment/pairs/train
  ${PROJECT_SOURCE_DIR}/tests/golden/segment/pairs/test/images/0.png ${PROJECT_BINARY_DIR}/examples/mask.png ${PROJECT_BINARY_DIR}/examples/memory heads=4)

# What the documents show works as shown.
add_test(NAME house.documents COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/check_documents.py ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/fungi ${CMAKE_CXX_COMPILER})
set_tests_properties(house.documents PROPERTIES TIMEOUT 300)

# The bytes of image features are those of the committed sums; left out where a build is slow on purpose.
if(NOT FUNGI_SANITIZE AND NOT FUNGI_EMULATE_TILES AND NOT DEFINED ENV{FUNGI_ISA})
  add_test(NAME house.feature_bytes COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/app/feature_bytes.py ${PROJECT_BINARY_DIR}/fungi ${PROJECT_SOURCE_DIR})
  set_tests_properties(house.feature_bytes PROPERTIES TIMEOUT 300)
endif()

# What `make demo` does, from nothing and in a folder of its own; left out where a build is slow on purpose.
if(NOT FUNGI_SANITIZE AND NOT FUNGI_EMULATE_TILES AND NOT DEFINED ENV{FUNGI_ISA})
  add_test(NAME house.demo COMMAND sh -c [=[rm -rf "$1" && "$0" "$1" "$2"]=] ${PROJECT_SOURCE_DIR}/tools/demo.sh ${PROJECT_BINARY_DIR}/demo-output ${PROJECT_BINARY_DIR}/fungi)
  set_tests_properties(house.demo PROPERTIES TIMEOUT 300 RUN_SERIAL TRUE FIXTURES_SETUP demo)  # takes every core; two minutes where nothing else runs
  add_test(NAME house.demo_accuracy COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/app/demo_accuracy.py ${PROJECT_BINARY_DIR}/fungi ${PROJECT_BINARY_DIR}/demo-output)
  set_tests_properties(house.demo_accuracy PROPERTIES FIXTURES_REQUIRED demo)
endif()

# The report in a real browser; skipped where there is none.
add_test(NAME report.browser COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/report/browser_test.py ${PROJECT_BINARY_DIR}/fungi ${PROJECT_SOURCE_DIR})
set_tests_properties(report.browser PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)

# The page of 'fungi serve' in a real browser; skipped where there is none, or no packages to drive it with.
add_test(NAME web.page COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/web/page_test.py ${PROJECT_BINARY_DIR}/fungi ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
set_tests_properties(web.page PROPERTIES TIMEOUT 400 SKIP_RETURN_CODE 77)

# The Python module, by the interpreter that it was built for; skipped where its tools could not be installed.
if(FUNGI_PYTHON AND NOT FUNGI_SANITIZE)
  add_test(NAME python.tests COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${PROJECT_BINARY_DIR}/python ${Python_EXECUTABLE} -m pytest -q -rs
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(python.tests PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77)
  add_test(NAME python.types COMMAND ${Python_EXECUTABLE} -m mypy --cache-dir ${PROJECT_BINARY_DIR}/mypy WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
elseif(NOT FUNGI_SANITIZE)
  add_test(NAME python.tests COMMAND sh -c "echo 'the Python module was not built: tools/python_env.sh build says why'; exit 77")
  set_tests_properties(python.tests PROPERTIES SKIP_RETURN_CODE 77)
endif()
