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

# A device for LibTorch where there is none (tests/device). NDEBUG, as LibTorch is compiled: what it tells of operators is
# laid out otherwise without.
function(tessera_pretend_device)
  add_library(pretend_device STATIC EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/device/pretend_device.cpp)
  target_include_directories(pretend_device PUBLIC ${CMAKE_SOURCE_DIR}/tests ${CMAKE_SOURCE_DIR}/lib)
  target_compile_definitions(pretend_device PRIVATE NDEBUG)
  target_link_libraries(pretend_device PUBLIC dep::torch)
  set_target_properties(pretend_device PROPERTIES JOB_POOL_COMPILE torch)
endfunction()

# tests/unit/ROOM/*.cpp with tests/unit/main.cpp as unit_ROOM; none where doctest and RapidCheck are not installed (who
# only builds does not need them).
function(tessera_unit_tests)
  find_path(DOCTEST_INCLUDE doctest/doctest.h)
  find_path(RAPIDCHECK_INCLUDE rapidcheck.h)
  if(NOT DOCTEST_INCLUDE OR NOT RAPIDCHECK_INCLUDE)
    return()
  endif()
  dep_plain(rapidcheck rapidcheck.h rapidcheck)
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
      list(APPEND sources ${CMAKE_SOURCE_DIR}/tests/unit/first_look.cpp)
    endif()
    set(beside "")  # what a test sets its room beside
    if(room STREQUAL nn)
      set(beside emulated_kernels pretend_device)
    elseif(room STREQUAL train)
      set(beside emulated_kernels)
    elseif(room STREQUAL ranks)
      set(beside tessera_nn)
    endif()
    tessera_test_binary(unit_${room} ${torch} SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/main.cpp ${sources}
      LIBRARIES tessera_${room} ${beside} dep::rapidcheck)
    add_test(NAME unit_${room} COMMAND unit_${room} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    # Threads that spin while they wait make small tensors many times slower where other tests run beside them.
    set_tests_properties(unit_${room} PROPERTIES ENVIRONMENT OMP_WAIT_POLICY=passive)
    if(torch)
      set_tests_properties(unit_${room} PROPERTIES PROCESSORS 2)  # torch takes every core it sees
    endif()
  endforeach()
  # Apart from unit_train: where there is a device autograd has threads, which the processes that a test forks have not.
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/device/*_test.cpp)
  tessera_test_binary(unit_device TORCH SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/main.cpp ${CMAKE_SOURCE_DIR}/tests/unit/first_look.cpp ${sources}
    LIBRARIES tessera_train emulated_kernels pretend_device)
  add_test(NAME unit_device COMMAND unit_device WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(unit_device PROPERTIES ENVIRONMENT OMP_WAIT_POLICY=passive PROCESSORS 2)
endfunction()

# tests/fuzz/NAME_fuzz.cpp: with TESSERA_FUZZ a libFuzzer program build/bin/fuzz_NAME; otherwise its inputs, those of
# tests/fuzz/corpus/NAME and tests/golden/NAME that exist, are replayed as the test fuzz_NAME, and so are inputs made of
# them. One that includes torch links the rooms up to infer.
function(tessera_fuzz_tests)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/*_fuzz.cpp)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "_fuzz$" "" name ${name})
    set(torch "")
    set(libraries tessera_cli tessera_ngrams tessera_task tessera_page tessera_store)
    file(STRINGS ${source} includes_torch REGEX "^#include \"nn/base/torch.h\"")
    if(includes_torch)
      set(torch TORCH)
      set(libraries tessera_infer)
    endif()
    if(TESSERA_FUZZ)
      add_executable(fuzz_${name} EXCLUDE_FROM_ALL ${source})
      if(torch)
        target_link_libraries(fuzz_${name} PRIVATE dep::torch)
        tessera_torch_target(fuzz_${name})
      endif()
      target_link_libraries(fuzz_${name} PRIVATE ${libraries} -fsanitize=fuzzer)
      set_property(GLOBAL APPEND PROPERTY TESSERA_FUZZERS fuzz_${name})
    else()
      tessera_test_binary(fuzz_${name} ${torch} SOURCES ${source} ${CMAKE_SOURCE_DIR}/tests/fuzz/replay.cpp
        LIBRARIES ${libraries})
      set(folders "")
      foreach(folder fuzz/corpus golden)
        if(IS_DIRECTORY ${CMAKE_SOURCE_DIR}/tests/${folder}/${name})
          list(APPEND folders ${CMAKE_SOURCE_DIR}/tests/${folder}/${name})
        endif()
      endforeach()
      add_test(NAME fuzz_${name} COMMAND fuzz_${name} ${folders})
    endif()
  endforeach()
  if(TESSERA_FUZZ)
    get_property(fuzzers GLOBAL PROPERTY TESSERA_FUZZERS)
    add_custom_target(fuzzers DEPENDS ${fuzzers})
  endif()
endfunction()

function(tessera_tests)
  add_custom_target(unit-tests)
  tessera_pretend_device()
  tessera_unit_tests()
  tessera_fuzz_tests()

  tessera_test_binary(link_order TORCH SOURCES ${CMAKE_SOURCE_DIR}/tests/link/link_order.cpp LIBRARIES tessera_nn dep::faiss ${CMAKE_DL_LIBS})
  add_test(NAME link_order COMMAND link_order)

  # What the program tests preload to make calls fail.
  add_library(faults SHARED EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/faults/faults.cpp ${CMAKE_SOURCE_DIR}/tests/faults/first_look.cpp)
  target_link_libraries(faults PRIVATE ${CMAKE_DL_LIBS})
  set_target_properties(faults PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_dependencies(unit-tests faults)

  get_property(programs GLOBAL PROPERTY TESSERA_PROGRAMS)
  add_test(NAME linked_libraries COMMAND ${CMAKE_SOURCE_DIR}/tests/link/linked_libraries ${CMAKE_BINARY_DIR}/bin
    "${TORCH_PROGRAMS}" ${programs})
  add_test(NAME include_directions COMMAND ${CMAKE_SOURCE_DIR}/tests/tree/include_directions ${CMAKE_SOURCE_DIR})
  add_test(NAME include_directions_finds COMMAND ${CMAKE_SOURCE_DIR}/tests/tree/include_directions_finds)
endfunction()
