package main

import (
	"fmt"
	"strconv"
)

// job is what is to be done.
type job struct {
	// watch: take events and reconcile, instead of a first state alone.
	watch      bool
	kubeconfig string
	objects    uint64
	events     uint64
	// pageSize is 0 for one response.
	pageSize  int64
	streaming bool
	metadata  bool
	variant   string
}

func jobOf(args []string) (job, error) {
	var job job
	if len(args) == 0 || args[0] != "list" && args[0] != "watch" {
		return job, fmt.Errorf("list or watch, not %q", args)
	}
	job.watch = args[0] == "watch"
	pairs := map[string]string{}
	for rest := args[1:]; len(rest) > 0; rest = rest[2:] {
		if len(rest) == 1 {
			return job, fmt.Errorf("%s has no value", rest[0])
		}
		pairs[rest[0]] = rest[1]
	}
	var failed error
	text := func(name string) string {
		value, found := pairs[name]
		if !found && failed == nil {
			failed = fmt.Errorf("%s is missing", name)
		}
		return value
	}
	number := func(name string) uint64 {
		n, err := strconv.ParseUint(text(name), 10, 63)
		if err != nil && failed == nil {
			failed = fmt.Errorf("%s is not a number", name)
		}
		return n
	}
	job.kubeconfig = text("--kubeconfig")
	job.objects = number("--objects")
	job.events = number("--events")
	job.pageSize = int64(number("--page-size"))
	job.streaming = text("--streaming") == "true"
	job.metadata = text("--metadata") == "true"
	job.variant = text("--variant")
	return job, failed
}
