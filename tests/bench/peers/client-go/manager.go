package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// manager is what is written with controller-runtime: a manager with one controller of pods.
func manager(ctx context.Context, config *rest.Config, job job, began time.Time) error {
	if job.pageSize != 500 {
		return errors.New("--page-size: an informer's is 500")
	}
	log.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:         scheme,
		MapperProvider: staticMapper,
		Metrics:        metricsserver.Options{BindAddress: "0"},
		Cache:          cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	})
	if err != nil {
		return err
	}
	var pod client.Object = &corev1.Pod{}
	options := []builder.ForOption{}
	if job.metadata {
		partial := &metav1.PartialObjectMetadata{}
		partial.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		pod, options = partial, append(options, builder.OnlyMetadata)
	}
	if !job.watch {
		nothing := predicate.NewPredicateFuncs(func(client.Object) bool { return false })
		options = append(options, builder.WithPredicates(nothing))
	}
	reconciles := reconcilesOf(job)
	look := func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		pod := pod.DeepCopyObject().(client.Object)
		if err := manager.GetClient().Get(ctx, request.NamespacedName, pod); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		reconciles.begin(pod.GetAnnotations())
		return reconcile.Result{}, nil
	}
	if err := builder.ControllerManagedBy(manager).
		Named("pods").
		For(&corev1.Pod{}, options...).
		Complete(reconcile.Func(look)); err != nil {
		return err
	}
	// An informer that is there before the cache starts is one that its start waits for.
	if _, err := manager.GetCache().GetInformer(ctx, pod); err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- manager.Start(ctx) }()
	done := make(chan error, 1)
	go func() {
		if job.watch {
			done <- reconciles.finish(began)
		} else if manager.GetCache().WaitForCacheSync(ctx) {
			done <- firstState(began)
		}
	}()
	select {
	case err := <-failed:
		return err
	case err := <-done:
		return err
	}
}

// staticMapper knows pods and asks the server for nothing.
func staticMapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	version := corev1.SchemeGroupVersion
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{version})
	mapper.Add(version.WithKind("Pod"), meta.RESTScopeNamespace)
	return mapper, nil
}
