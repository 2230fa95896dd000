# SPDX-License-Identifier: Apache-2.0
# One test program per folder of tests/, each named after the folder of fungi/ that it mirrors.
find_package(GTest REQUIRED)
include(GoogleTest)
add_library(fungi-test-support INTERFACE)
target_link_libraries(fungi-test-support INTERFACE fungi::fungi fmt::fmt nlohmann_json::nlohmann_json GTest::gtest_main)
target_compile_definitions(fungi-test-support INTERFACE
  FUNGI_GOLDEN_DIR="${PROJECT_SOURCE_DIR}/tests/golden" FUNGI_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
  FUNGI_BINARY="${PROJECT_BINARY_DIR}/fungi")
foreach(room base kernel checkpoint input view backbone objective feature search evaluate report app)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${room}/*_test.cpp)
  if(sources)
    add_executable(test_${room} ${sources})
    target_link_libraries(test_${room} PRIVATE fungi-test-support)
    gtest_discover_tests(test_${room} DISCOVERY_MODE PRE_TEST TEST_PREFIX ${room}. PROPERTIES TIMEOUT 300)
  endif()
endforeach()
if(TARGET test_app)
  add_dependencies(test_app fungi-cli)
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME house.layers COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/check_layers.py ${PROJECT_SOURCE_DIR})
