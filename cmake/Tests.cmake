# What ctest runs. Everything here is built by the target unit-tests, not by a plain build.

# A test binary; torch's links torch first, as the programs do.
function(tessera_test_binary name)
  cmake_parse_arguments(TEST "TORCH" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${TEST_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  if(TEST_TORCH)
    target_link_libraries(${name} PRIVATE dep::torch)
    tessera_torch_target(${name})
  endif()
  target_link_libraries(${name} PRIVATE ${TEST_LIBRARIES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_dependencies(unit-tests ${name})
endfunction()

# tests/unit/ROOM/*.cpp with tests/unit/main.cpp as unit_ROOM.
function(tessera_unit_tests)
  get_property(rooms GLOBAL PROPERTY TESSERA_ROOMS)
  get_property(torch_rooms GLOBAL PROPERTY TESSERA_TORCH_ROOMS)
  foreach(room ${rooms})
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/${room}/*.cpp)
    if(NOT sources)
      continue()
    endif()
    set(torch "")
    if(room IN_LIST torch_rooms)
      set(torch TORCH)
    endif()
    tessera_test_binary(unit_${room} ${torch} SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/main.cpp ${sources}
      LIBRARIES tessera_${room} dep::rapidcheck)
    add_test(NAME unit_${room} COMMAND unit_${room} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    if(torch)
      set_tests_properties(unit_${room} PROPERTIES PROCESSORS 2)  # torch takes every core it sees
    endif()
  endforeach()
endfunction()

# tests/fuzz/NAME.cpp: with TESSERA_FUZZ a libFuzzer program build/bin/fuzz_NAME; otherwise its corpus,
# tests/fuzz/corpus/NAME/*, is replayed as the test fuzz_NAME.
function(tessera_fuzz_tests)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/*.cpp)
  list(FILTER sources EXCLUDE REGEX /replay.cpp$)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    if(TESSERA_FUZZ)
      add_executable(fuzz_${name} EXCLUDE_FROM_ALL ${source})
      target_link_libraries(fuzz_${name} PRIVATE tessera_text tessera_task -fsanitize=fuzzer)
      set_property(GLOBAL APPEND PROPERTY TESSERA_FUZZERS fuzz_${name})
    else()
      tessera_test_binary(fuzz_${name} SOURCES ${source} ${CMAKE_SOURCE_DIR}/tests/fuzz/replay.cpp
        LIBRARIES tessera_text tessera_task)
      add_test(NAME fuzz_${name} COMMAND fuzz_${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
    endif()
  endforeach()
  if(TESSERA_FUZZ)
    get_property(fuzzers GLOBAL PROPERTY TESSERA_FUZZERS)
    add_custom_target(fuzzers DEPENDS ${fuzzers})
  endif()
endfunction()

function(tessera_tests)
  add_custom_target(unit-tests)
  tessera_unit_tests()
  tessera_fuzz_tests()

  tessera_test_binary(link_order TORCH SOURCES ${CMAKE_SOURCE_DIR}/tests/link/link_order.cpp LIBRARIES dep::faiss ${CMAKE_DL_LIBS})
  add_test(NAME link_order COMMAND link_order)
  get_property(programs GLOBAL PROPERTY TESSERA_PROGRAMS)
  add_test(NAME linked_libraries COMMAND ${CMAKE_SOURCE_DIR}/tests/link/linked_libraries ${CMAKE_BINARY_DIR}/bin
    "${TORCH_PROGRAMS}" ${programs})
  add_test(NAME include_directions COMMAND ${CMAKE_SOURCE_DIR}/tests/tree/include_directions ${CMAKE_SOURCE_DIR})
  add_test(NAME include_directions_finds COMMAND ${CMAKE_SOURCE_DIR}/tests/tree/include_directions_finds)
endfunction()
