# Files that programs carry as strings.

# tessera_assets(TARGET HEADER NAMESPACE NAME:FILE...): each file as the std::string_view that the header declares.
function(tessera_assets target header namespace)
  set(output ${CMAKE_BINARY_DIR}/generated/${namespace}_assets.cpp)
  set(code "#include \"${header}\"\n\nnamespace ${namespace} {\n")
  foreach(pair ${ARGN})
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 name)
    list(GET pair 1 file)
    set(file ${CMAKE_SOURCE_DIR}/lib/${file})
    file(READ ${file} text)
    string(APPEND code "extern const std::string_view ${name};\nconst std::string_view ${name} = R\"page_asset(${text})page_asset\";\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  file(WRITE ${output}.new "${code}}  // namespace ${namespace}\n")
  file(COPY_FILE ${output}.new ${output} ONLY_IF_DIFFERENT)
  target_sources(${target} PRIVATE ${output})
endfunction()
