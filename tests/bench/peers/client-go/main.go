// client-go and controller-runtime as contestants: what their users would write for the same work, tuned as an expert would.
//
// The lines that it reads and writes are those of `src/contestant.rs` of the benchmarks.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	began := time.Now()
	if err := run(began, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "client-go-contestant:", err)
		os.Exit(1)
	}
}

func run(began time.Time, args []string) error {
	job, err := jobOf(args)
	if err != nil {
		return err
	}
	// Whether a first list streams is a feature gate of client-go, which is read when it is first asked for.
	if err := os.Setenv("KUBE_FEATURE_WatchListClient", fmt.Sprint(job.streaming)); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", job.kubeconfig)
	if err != nil {
		return err
	}
	tune(config)
	ctx := context.Background()
	switch job.variant {
	case "client-go":
		return informer(ctx, config, job, began)
	case "controller-runtime":
		return manager(ctx, config, job, began)
	}
	return fmt.Errorf("there is no variant %q", job.variant)
}

// tune: JSON, as the server speaks nothing else, and no rate limit of the client's own.
func tune(config *rest.Config) {
	config.ContentType = "application/json"
	config.AcceptContentTypes = "application/json"
	config.QPS = -1
}
