package contestant

import (
	"fmt"
	"slices"
	"strconv"
)

// Job is what is to be done.
type Job struct {
	// Watch: take events and reconcile, instead of a first state alone.
	Watch bool
	// Spike: keep a first state up to date, and tell what is held when asked.
	Spike      bool
	Kubeconfig string
	// ConfigMaps instead of Pods.
	ConfigMaps bool
	// Namespace is empty for all.
	Namespace string
	Objects   uint64
	Events    uint64
	// Before is the number of the last event that belongs to the first state.
	Before uint64
	// PageSize is 0 for one response.
	PageSize  int64
	Streaming bool
	Metadata  bool
	// Protobuf: the server speaks it.
	Protobuf bool
	// Controllers share the objects: each has a part of them.
	Controllers uint64
	// Requeue: each reconcile asks for another one after an hour.
	Requeue bool
	Variant string
}

func jobOf(args []string) (Job, error) {
	var job Job
	if len(args) == 0 || !slices.Contains([]string{"list", "watch", "spike"}, args[0]) {
		return job, fmt.Errorf("list, watch or spike, not %q", args)
	}
	job.Watch, job.Spike = args[0] == "watch", args[0] == "spike"
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
	job.Kubeconfig = text("--kubeconfig")
	resource := text("--resource")
	if failed == nil && resource != "pods" && resource != "configmaps" {
		failed = fmt.Errorf("%q is not pods or configmaps", resource)
	}
	job.ConfigMaps = resource == "configmaps"
	job.Namespace = text("--namespace")
	job.Objects = number("--objects")
	job.Events = number("--events")
	job.Before = number("--before")
	job.PageSize = int64(number("--page-size"))
	job.Streaming = text("--streaming") == "true"
	job.Metadata = text("--metadata") == "true"
	job.Protobuf = text("--protobuf") == "true"
	job.Controllers = max(number("--controllers"), 1)
	job.Requeue = text("--requeue") == "true"
	job.Variant = text("--variant")
	return job, failed
}
