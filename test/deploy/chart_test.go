package deploy

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	syaml "sigs.k8s.io/yaml"
)

const chartDir = "../../deploy/helm/agentd"

// binary is the agentd whose commands the files call.
func binary(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../bin/agentd")
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v: run make build first", err)
	}
	return path
}

// values reads a file of values, or gives the chart's own.
func values(t *testing.T, files ...string) chartutil.Values {
	t.Helper()
	all := chartutil.Values{}
	for _, f := range files {
		v, err := chartutil.ReadValuesFile(filepath.Join(chartDir, f))
		if err != nil {
			t.Fatal(err)
		}
		all = chartutil.CoalesceTables(v, all)
	}
	return all
}

// rendered is what the chart makes, by kind and name.
type rendered map[string]any

func render(v chartutil.Values) (map[string]string, error) {
	chart, err := loader.Load(chartDir)
	if err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependencies(chart, v); err != nil {
		return nil, err
	}
	all, err := chartutil.ToRenderValues(chart, v, chartutil.ReleaseOptions{Name: "agents", Namespace: "prod", Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	e := engine.Engine{Strict: true}
	return e.Render(chart, all)
}

// decode reads every object strictly, as the API server's strict validation does: fields that there are not, and
// fields that are there twice, are errors.
func decode(t *testing.T, files map[string]string) rendered {
	t.Helper()
	out := rendered{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		r := yaml.NewYAMLReader(bufReader(files[name]))
		for {
			doc, err := r.Read()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			var meta struct {
				APIVersion, Kind string
				Metadata         struct{ Name string }
			}
			if err := syaml.Unmarshal(doc, &meta); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, doc)
			}
			if meta.Kind == "" {
				continue
			}
			makers := map[string]func() any{
				"apps/v1 Deployment":                     func() any { return &appsv1.Deployment{} },
				"v1 Service":                             func() any { return &corev1.Service{} },
				"v1 ConfigMap":                           func() any { return &corev1.ConfigMap{} },
				"v1 ServiceAccount":                      func() any { return &corev1.ServiceAccount{} },
				"policy/v1 PodDisruptionBudget":          func() any { return &policyv1.PodDisruptionBudget{} },
				"autoscaling/v2 HorizontalPodAutoscaler": func() any { return &autoscalingv2.HorizontalPodAutoscaler{} },
				"networking.k8s.io/v1 NetworkPolicy":     func() any { return &networkingv1.NetworkPolicy{} },
				"networking.k8s.io/v1 Ingress":           func() any { return &networkingv1.Ingress{} },
			}
			maker := makers[meta.APIVersion+" "+meta.Kind]
			if maker == nil {
				t.Fatalf("%s: nobody knows %s %s", name, meta.APIVersion, meta.Kind)
			}
			obj := maker()
			if err := syaml.UnmarshalStrict(doc, obj); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, doc)
			}
			key := meta.Kind + "/" + meta.Metadata.Name
			if out[key] != nil {
				t.Fatalf("%s is there twice", key)
			}
			out[key] = obj
		}
	}
	return out
}

func of[T any](t *testing.T, r rendered, key string) T {
	t.Helper()
	v, ok := r[key].(T)
	if !ok {
		t.Fatalf("there is no %s among %v", key, slices.Sorted(maps.Keys(r)))
	}
	return v
}

func TestChartLint(t *testing.T) {
	for _, files := range [][]string{nil, {"ci/full-values.yaml"}} {
		l := lint.AllWithKubeVersion(chartDir, values(t, files...), "prod", nil)
		for _, m := range l.Messages {
			if m.Severity >= support.WarningSev {
				t.Errorf("%v: %s", files, m)
			}
		}
		if len(l.Messages) == 0 && l.HighestSeverity > 0 {
			t.Error(l.HighestSeverity)
		}
	}
}

func TestChart(t *testing.T) {
	for _, c := range []struct {
		files           []string
		grace           int64
		objects         int
		replicas, agent int
		image           string
		args            string
	}{
		{nil, 5 + 10 + 60 + 15, 9, 2, 1, "agentd:0.1.0", "[worker --addr 0.0.0.0:7071]"},
		{[]string{"ci/full-values.yaml"}, 10 + 20 + 180 + 15, 12, 0, 2, "registry.example.com/agentd:1.2.3", "[worker --addr 0.0.0.0:7071 --engine temporal://temporal-frontend:7233/agentd]"},
	} {
		t.Run(fmt.Sprint(c.files), func(t *testing.T) {
			files, err := render(values(t, c.files...))
			if err != nil {
				t.Fatal(err)
			}
			r := decode(t, files)
			if len(r) != c.objects {
				t.Errorf("%d objects: %v", len(r), slices.Sorted(maps.Keys(r)))
			}
			cm := of[*corev1.ConfigMap](t, r, "ConfigMap/agents-agentd")
			of[*corev1.ServiceAccount](t, r, "ServiceAccount/agents-agentd")
			pods := map[string]corev1.PodTemplateSpec{}
			for _, role := range []string{"api", "worker"} {
				d := of[*appsv1.Deployment](t, r, "Deployment/agents-agentd-"+role)
				pods[role] = d.Spec.Template
				checkPod(t, &d.Spec.Template.Spec, cm, c.grace, c.image)
				if !covers(d.Spec.Selector.MatchLabels, d.Spec.Template.Labels) {
					t.Errorf("%s selects %v, its pods are %v", role, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels)
				}
				if c.replicas == 0 != (d.Spec.Replicas == nil) || d.Spec.Replicas != nil && int(*d.Spec.Replicas) != c.replicas {
					t.Errorf("%s has %v replicas", role, d.Spec.Replicas)
				}
				pdb := of[*policyv1.PodDisruptionBudget](t, r, "PodDisruptionBudget/agents-agentd-"+role)
				if !reflect.DeepEqual(pdb.Spec.Selector, d.Spec.Selector) {
					t.Errorf("the disruption budget of %s is of %v", role, pdb.Spec.Selector)
				}
				if c.replicas == 0 {
					h := of[*autoscalingv2.HorizontalPodAutoscaler](t, r, "HorizontalPodAutoscaler/agents-agentd-"+role)
					if h.Spec.ScaleTargetRef.Name != d.Name {
						t.Errorf("the autoscaler of %s is of %v", role, h.Spec.ScaleTargetRef)
					}
				}
			}
			svc := of[*corev1.Service](t, r, "Service/agents-agentd")
			if !covers(svc.Spec.Selector, pods["api"].Labels) || covers(svc.Spec.Selector, pods["worker"].Labels) {
				t.Errorf("the service selects %v", svc.Spec.Selector)
			}
			worker := pods["worker"].Spec.Containers[0]
			if got := fmt.Sprint(worker.Args); got != c.args {
				t.Errorf("worker: %s", got)
			}
			if a := pods["api"].Spec.Containers[0].Args; !slices.Contains(a, "--no-worker") {
				t.Errorf("api: %v", a)
			}
			np := of[*networkingv1.NetworkPolicy](t, r, "NetworkPolicy/agents-agentd-worker")
			if !covers(np.Spec.PodSelector.MatchLabels, pods["worker"].Labels) || (len(np.Spec.Ingress) == 0) != (c.files == nil) {
				t.Errorf("workers may be reached: %+v", np.Spec)
			}
			api := pods["api"].Spec
			checkConfig(t, &api, cm, c.agent)
			checkArgs(t, worker.Args)
			checkArgs(t, pods["api"].Spec.Containers[0].Args)
		})
	}
}

// checkPod holds what a pod promises: no rights, nothing writable, enough time to end.
func checkPod(t *testing.T, p *corev1.PodSpec, cm *corev1.ConfigMap, grace int64, image string) {
	t.Helper()
	c := p.Containers[0]
	if *p.TerminationGracePeriodSeconds != grace {
		t.Errorf("a pod may take %d s to end, not %d", *p.TerminationGracePeriodSeconds, grace)
	}
	if *p.AutomountServiceAccountToken || !*p.SecurityContext.RunAsNonRoot || *p.SecurityContext.RunAsUser == 0 || p.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
		!*c.SecurityContext.ReadOnlyRootFilesystem || *c.SecurityContext.AllowPrivilegeEscalation || c.SecurityContext.Capabilities.Drop[0] != "ALL" {
		t.Errorf("the pod has rights: %+v %+v", p.SecurityContext, c.SecurityContext)
	}
	if c.LivenessProbe.HTTPGet.Path != "/healthz" || c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.LivenessProbe.HTTPGet.Port.StrVal != c.Ports[0].Name {
		t.Errorf("probes: %+v %+v", c.LivenessProbe, c.ReadinessProbe)
	}
	if c.Image != image || len(c.Resources.Requests) == 0 || len(c.Resources.Limits) == 0 {
		t.Errorf("%s %+v", c.Image, c.Resources)
	}
	volumes := map[string]bool{}
	for _, v := range p.Volumes {
		volumes[v.Name] = true
		if v.ConfigMap == nil || v.Name != "config" {
			continue
		}
		for _, item := range v.ConfigMap.Items {
			if cm.Data[item.Key] == "" {
				t.Errorf("the config map has no %s", item.Key)
			}
		}
	}
	for _, m := range c.VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("there is no volume %s", m.Name)
		}
	}
	for _, e := range c.Env {
		if e.Name == "AGENTD_STORE" && (e.Value != "" || e.ValueFrom.SecretKeyRef == nil) {
			t.Error("the store's password is in the pod")
		}
	}
}

// checkConfig lays the config map out as a kubelet does, behind links, and has agentd read it.
func checkConfig(t *testing.T, p *corev1.PodSpec, cm *corev1.ConfigMap, agents int) {
	t.Helper()
	dir := t.TempDir()
	const version = "..2026_11_21_12_00_00.1"
	for _, item := range p.Volumes[0].ConfigMap.Items {
		path := filepath.Join(dir, version, item.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(cm.Data[item.Key]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	links := map[string]string{"..data": version}
	entries, err := os.ReadDir(filepath.Join(dir, version))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		links[e.Name()] = "..data/" + e.Name()
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	check := func() (string, error) {
		cmd := exec.Command(binary(t), "config", "check", dir)
		cmd.Env = []string{"OPENAI_API_KEY=x", "ANTHROPIC_API_KEY=x"}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := check(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	profiles, err := filepath.Glob(filepath.Join(dir, "agents", "*.yaml"))
	if err != nil || len(profiles) != agents {
		t.Errorf("profiles: %v", profiles)
	}
	if err := os.WriteFile(profiles[0], []byte("nonsense: 1"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := check(); err == nil || !strings.Contains(out, "nonsense") {
		t.Errorf("what is behind the links is not read: %v\n%s", err, out)
	}
}

// checkArgs has agentd read a command line: --help is shown only if all flags are known.
func checkArgs(t *testing.T, args []string) {
	t.Helper()
	if out, err := exec.Command(binary(t), append(slices.Clone(args), "--help")...).CombinedOutput(); err != nil {
		t.Errorf("agentd %v: %v\n%s", args, err, out)
	}
}

func TestChartRefuses(t *testing.T) {
	set := func(path string, v any) chartutil.Values {
		keys := strings.Split(path, ".")
		m := map[string]any{keys[len(keys)-1]: v}
		for i := len(keys) - 2; i >= 0; i-- {
			m = map[string]any{keys[i]: m}
		}
		return m
	}
	for _, c := range []struct {
		values chartutil.Values
		want   string
	}{
		{set("config.agentd", "cluster: {drain_timeout: 500ms}"), "the chart reads 90s, 2m or 1m30s"},
		{set("config.agentd", "cluster: ["), "no YAML"},
		{set("worker.replicas", 0), "nobody would drive runs"},
		{set("wroker.replicas", 1), "wroker"},
		{set("engine", "http://temporal"), "engine"},
	} {
		_, err := render(c.values)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.values, err)
		}
	}
	if _, err := render(chartutil.Values{"worker": map[string]any{"replicas": 0}, "api": map[string]any{"drivesRuns": true}}); err != nil {
		t.Error(err)
	}
}

func covers(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return len(selector) > 0
}

func bufReader(s string) *bufio.Reader { return bufio.NewReader(strings.NewReader(s)) }
