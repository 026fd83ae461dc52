# build/lib/tessera/libtessera_parquet.so: the plug-in with which Parquet files are read, where Apache Arrow's headers and
# libraries are: those of the pyarrow wheel, which tools/setup parquet brings into .deps/arrow, or of $ARROW_ROOT. Programs link
# none of it, and load it when a Parquet file comes.

find_path(TESSERA_ARROW_INCLUDE parquet/column_reader.h HINTS ENV ARROW_ROOT ${CMAKE_SOURCE_DIR}/.deps/arrow PATH_SUFFIXES include)
if(TESSERA_ARROW_INCLUDE)
  file(GLOB arrow_libraries ${TESSERA_ARROW_INCLUDE}/../libarrow.so.* ${TESSERA_ARROW_INCLUDE}/../libparquet.so.*)
  if(NOT arrow_libraries)
    find_library(TESSERA_ARROW arrow HINTS ${TESSERA_ARROW_INCLUDE}/../lib REQUIRED)
    find_library(TESSERA_PARQUET parquet HINTS ${TESSERA_ARROW_INCLUDE}/../lib REQUIRED)
    set(arrow_libraries ${TESSERA_ARROW} ${TESSERA_PARQUET})
  else()
    install(FILES ${arrow_libraries} DESTINATION lib/tessera)
  endif()
  add_library(tessera_parquet MODULE ${CMAKE_SOURCE_DIR}/lib/text/documents/parquet_plugin.cpp)
  target_compile_definitions(tessera_parquet PRIVATE TESSERA_VERSION="${PROJECT_VERSION}")
  target_include_directories(tessera_parquet PRIVATE ${CMAKE_SOURCE_DIR}/lib)
  target_include_directories(tessera_parquet SYSTEM PRIVATE ${TESSERA_ARROW_INCLUDE})
  target_compile_options(tessera_parquet PRIVATE -fvisibility=hidden)
  target_link_libraries(tessera_parquet PRIVATE ${arrow_libraries})
  set_target_properties(tessera_parquet PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/tessera
    BUILD_RPATH ${TESSERA_ARROW_INCLUDE}/.. INSTALL_RPATH $ORIGIN)
  install(TARGETS tessera_parquet LIBRARY DESTINATION lib/tessera)
endif()
