// A CPython without files that executes what its host hands it. The host calls begin once, and then
// execute; between the two it may copy the memory, for as many instances as it likes.
#include <Python.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct _frozen standard_library[]; // made by freeze.py

// refuel is called by what lab/tools/wasmfuel adds; called here, so that the linker keeps it.
__attribute__((import_module("lutra"), import_name("refuel"))) int refuel(void);

// Prints go nowhere, and there is nothing to read. The modules are what programs import most.
static const char setup[] =
	"import sys, io\n"
	"class Nowhere(io.TextIOBase):\n"
	"    def write(self, text): return len(text)\n"
	"    def writable(self): return True\n"
	"sys.stdout = sys.__stdout__ = Nowhere()\n"
	"sys.stderr = sys.__stderr__ = Nowhere()\n"
	"sys.stdin = sys.__stdin__ = io.StringIO()\n"
	"sys.argv = ['']\n"
	"sys.setrecursionlimit(1000)\n" // as elsewhere; builds for WASI have less
	"del sys, io, Nowhere\n"
	"def load():\n"
	"    import typing, math, re, collections, itertools, functools, string, random, heapq, bisect, copy, operator, datetime, dataclasses\n"
	"load()\n"
	"del load\n";

static PyObject *names(void) {
	PyObject *module = PyImport_AddModule("__main__");
	return module ? PyModule_GetDict(module) : NULL;
}

// begin makes the interpreter ready. It returns 0, or 1 where that has failed.
__attribute__((export_name("begin"))) int begin(void) {
	refuel();
	PyImport_FrozenModules = standard_library;
	PyConfig config;
	PyConfig_InitIsolatedConfig(&config);
	config.site_import = 0;
	config.use_hash_seed = 1; // the same order of sets everywhere
	config.hash_seed = 0;
	config.install_signal_handlers = 0;
	config.configure_c_stdio = 0;
	config.pathconfig_warnings = 0;
	config.write_bytecode = 0;
	config.module_search_paths_set = 1;
	PyStatus status = PyConfig_SetString(&config, &config.executable, L"python");
	if (!PyStatus_Exception(status))
		status = Py_InitializeFromConfig(&config);
	PyConfig_Clear(&config);
	if (PyStatus_Exception(status))
		return 1;
	PyObject *dict = names(), *done = dict ? PyRun_String(setup, Py_file_input, dict, dict) : NULL;
	if (!done)
		return 1;
	Py_DECREF(done);
	return 0;
}

// fault returns the exception that is set as "TYPE: TEXT".
static char *fault(void) {
	PyObject *type, *value, *trace;
	PyErr_Fetch(&type, &value, &trace);
	PyErr_NormalizeException(&type, &value, &trace);
	const char *name = type ? ((PyTypeObject *)type)->tp_name : "an exception", *text = NULL;
	const char *dot = strrchr(name, '.');
	if (dot)
		name = dot + 1;
	PyObject *string = value ? PyObject_Str(value) : NULL;
	if (string)
		text = PyUnicode_AsUTF8(string);
	PyErr_Clear();
	size_t size = strlen(name) + (text ? strlen(text) : 0) + 3;
	char *out = malloc(size);
	if (out)
		snprintf(out, size, text && *text ? "%s: %s" : "%s", name, text);
	return out;
}

// execute executes statements, with the names of those before. It returns NULL, or the exception that
// ended them.
__attribute__((export_name("execute"))) const char *execute(const char *statements) {
	PyObject *dict = names(), *done = dict ? PyRun_String(statements, Py_file_input, dict, dict) : NULL;
	if (done) {
		Py_DECREF(done);
		return NULL;
	}
	char *text = fault();
	return text ? text : "MemoryError";
}
