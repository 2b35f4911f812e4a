package main

import (
	"context"
	"fmt"
)

func (b *bench) serve(ctx context.Context) error   { return nil }
func (b *bench) waiting(ctx context.Context) error { return nil }
func (b *bench) start(ctx context.Context) error   { return nil }
func (b *bench) disk(ctx context.Context) error    { fmt.Print(); return nil }
