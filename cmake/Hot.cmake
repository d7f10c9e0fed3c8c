# The functions that programs run lie side by side: the kernel maps code by 64 KiB around a page that is touched, so
# where they are strewn all of the code is resident, and half of it serves reports, profiles and learning.
#
# hakmem_group_hot(<static library> <file of names>): the functions in the file go to sections .text.hot.*, which
# linkers put together. What they are compiled from needs -ffunction-sections. A name that is none does nothing.
function(hakmem_group_hot library names)
    if(NOT CMAKE_OBJCOPY OR NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR HAKMEM_SANITIZE)
        return()
    endif()
    file(STRINGS ${names} functions REGEX "^[A-Za-z_]")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${names})
    list(TRANSFORM functions REPLACE "(.+)" "--rename-section .text.\\1=.text.hot.\\1")
    list(JOIN functions "\n" text)
    # With other names the command is another one, so that the library is made anew.
    string(MD5 sum "${text}")
    set(options ${CMAKE_CURRENT_BINARY_DIR}/${library}.${sum}.hot)
    file(CONFIGURE OUTPUT ${options} CONTENT "${text}\n" @ONLY)
    add_custom_command(TARGET ${library} POST_BUILD
        COMMAND ${CMAKE_OBJCOPY} -D @${options} $<TARGET_FILE:${library}> VERBATIM)
    set_property(TARGET ${library} APPEND PROPERTY LINK_DEPENDS ${options})
endfunction()
