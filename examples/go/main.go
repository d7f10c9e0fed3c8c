// A table of rows in a heap of hakmem: labels, a limit that is an error, and the end of a tenant in one call.
//
//	PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig LD_LIBRARY_PATH=$PREFIX/lib go run .
package main

import (
	"fmt"
	"log"
)

type row struct {
	id, balance int64
	name        []byte // in the heap as well: Go's collector does not look here
}

func serve(limit uint64) error {
	heap, err := newHeap()
	if err != nil {
		return err
	}
	defer heap.Drop()
	rows, err := heap.Define("rows")
	if err != nil {
		return err
	}
	names, err := heap.Define("names")
	if err != nil {
		return err
	}
	if _, err := heap.Define(""); err == nil {
		return fmt.Errorf("a label without a name was defined")
	}

	table, err := makeSlice[row](heap, 1000, rows)
	if err != nil {
		return err
	}
	for i := range table {
		table[i].id = int64(i)
		if table[i].name, err = makeSlice[byte](heap, 24, names); err != nil {
			return err
		}
		copy(table[i].name, fmt.Sprintf("row %d", i))
	}
	for i := 0; i < len(table); i += 2 {
		freeSlice(heap, table[i].name)
		table[i].name = nil
	}
	fmt.Printf("%s, %d blocks of rows, %d of names\n", table[999].name[:7], heap.Usage(rows).Blocks, heap.Usage(names).Blocks)

	heap.Limit(heap.Committed() + limit)
	taken := uint64(0)
	for {
		if _, err := makeSlice[byte](heap, 10000, rows); err != nil {
			fmt.Printf("after at least half of the limit: %t, within it: %t\n%v\n", taken >= limit/2, taken <= limit, err)
			return nil
		}
		taken += 10000
	}
}

func main() {
	for range [2]struct{}{} {
		if err := serve(1 << 20); err != nil {
			log.Fatal(err)
		}
	}
}
