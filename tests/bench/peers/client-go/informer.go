package main

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

var pods = corev1.SchemeGroupVersion.WithResource("pods")

// informer is what is written with client-go alone: a shared informer, a queue and one worker.
func informer(ctx context.Context, config *rest.Config, job job, began time.Time) error {
	shared, err := sharedInformer(config, job)
	if err != nil {
		return err
	}
	if err := shared.SetTransform(dropManagedFields); err != nil {
		return err
	}
	if !job.watch {
		go shared.RunWithContext(ctx)
		for !shared.HasSynced() {
			time.Sleep(2 * time.Millisecond)
		}
		return firstState(began)
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	enqueue := func(obj any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
			queue.Add(key)
		}
	}
	if _, err := shared.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, obj any) { enqueue(obj) },
		DeleteFunc: enqueue,
	}); err != nil {
		return err
	}
	reconciles := reconcilesOf(job)
	go shared.RunWithContext(ctx)
	go func() {
		for {
			key, shutdown := queue.Get()
			if shutdown {
				return
			}
			if obj, exists, err := shared.GetIndexer().GetByKey(key); err == nil && exists {
				reconciles.begin(obj.(metav1.Object).GetAnnotations())
			}
			queue.Forget(key)
			queue.Done(key)
		}
	}()
	return reconciles.finish(began)
}

// sharedInformer of pods. Page sizes are the reflector's own: 500, which is what is asked for unless it is one response.
func sharedInformer(config *rest.Config, job job) (cache.SharedIndexInformer, error) {
	if job.pageSize != 500 {
		return nil, errors.New("--page-size: an informer's is 500")
	}
	if job.metadata {
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return metadatainformer.NewSharedInformerFactory(client, 0).ForResource(pods).Informer(), nil
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer(), nil
}

// dropManagedFields before an object is stored.
func dropManagedFields(obj any) (any, error) {
	if object, is := obj.(metav1.Object); is {
		object.SetManagedFields(nil)
	}
	return obj, nil
}
