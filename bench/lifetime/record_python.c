/* import lifetime_python: the recorder's sites are lines of Python. mark() = a trough. CPython 3.11, whose
 * frames no public function reads without an allocation. */
#define Py_BUILD_CORE
#include <Python.h>

#include <internal/pycore_frame.h>

#include "record.h"

#include <malloc.h>

static unsigned python_frames(uint32_t *frames, unsigned most)
{
    unsigned n = 0;
    PyThreadState *state = PyGILState_GetThisThreadState();
    _PyInterpreterFrame *f = state && state->cframe ? state->cframe->current_frame : NULL;
    for (; f && n < most; f = f->previous) {
        if (_PyFrame_IsIncomplete(f)) continue;
        PyCodeObject *code = f->f_code;
        Py_ssize_t length;
        int line = PyCode_Addr2Line(code, _PyInterpreterFrame_LASTI(f) * (int)sizeof(_Py_CODEUNIT));
        const char *file = PyUnicode_IS_COMPACT_ASCII(code->co_filename)
                               ? PyUnicode_AsUTF8AndSize(code->co_filename, &length)
                               : NULL;
        uint32_t hash = file ? record_hash(record_seed, file, (uint64_t)length) : record_seed;
        frames[n++] = record_hash(hash, &line, sizeof line);
    }
    return n;
}

static PyObject *mark(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    malloc_trim(0);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"mark", mark, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "lifetime_python", .m_size = -1,
                                    .m_methods = methods};

PyMODINIT_FUNC PyInit_lifetime_python(void)
{
    record_set_frames(python_frames);
    return PyModule_Create(&module);
}
