// A heap of hakmem outside of Go's own, for one goroutine at a time.

package main

/*
#cgo pkg-config: hakmem
#include <hakmem/hakmem.h>
#include <stdlib.h>
*/
import "C"

import (
	"errors"
	"unsafe"
)

var errNoMemory = errors.New("hakmem: the heap has reached its limit, or the system has no memory")

// Heap is what one tenant takes. Nothing in it is known to Go's collector: it may hold no Go pointer, and what is read
// after Drop is gone.
type Heap struct{ ctx *C.hak_ctx }

// Label says what a block is for.
type Label C.hak_label

func newHeap() (*Heap, error) {
	ctx := C.hak_ctx_new(nil, nil)
	if ctx == nil {
		return nil, errNoMemory
	}
	return &Heap{ctx}, nil
}

// Define returns the label of a name.
func (h *Heap) Define(name string) (Label, error) {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	label := C.hak_label_define(h.ctx, text)
	if label == 0 {
		return 0, errors.New("hakmem: no label is left, or the name is not valid")
	}
	return Label(label), nil
}

// Limit bounds the committed bytes; 0 = no limit. One below what is committed stops growth.
func (h *Heap) Limit(bytes uint64) { C.hak_limit(h.ctx, 0, C.size_t(bytes), nil, nil) }

// Drop frees all blocks at once, without a step for each.
func (h *Heap) Drop() {
	C.hak_ctx_destroy(h.ctx)
	h.ctx = nil
}

// makeSlice is make([]T, n) in the heap: zeros. T has no Go pointers.
func makeSlice[T any](h *Heap, n int, label Label) ([]T, error) {
	var one T
	p := C.hak_calloc_cs(h.ctx, C.size_t(n), C.size_t(unsafe.Sizeof(one)), C.hak_label(label), 0)
	if p == nil {
		return nil, errNoMemory
	}
	return unsafe.Slice((*T)(p), n), nil
}

// freeSlice gives back what makeSlice returned.
func freeSlice[T any](h *Heap, s []T) { C.hak_free(h.ctx, unsafe.Pointer(unsafe.SliceData(s))) }

// Usage is what lives under one label.
type Usage struct {
	Bytes, Blocks uint64
}

func (h *Heap) Usage(label Label) Usage {
	var info C.hak_label_info
	C.hak_label_stats(h.ctx, C.hak_label(label), &info)
	return Usage{uint64(info.live_bytes), uint64(info.live_blocks)}
}

// Committed is what the limit counts.
func (h *Heap) Committed() uint64 {
	stats := C.hak_stats{size: C.size_t(unsafe.Sizeof(C.hak_stats{}))}
	C.hak_ctx_stats(h.ctx, &stats)
	return uint64(stats.committed_bytes)
}
