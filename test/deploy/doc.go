// Package deploy checks what is in the folder deploy: the Helm chart (lint, rendering, strict decoding into
// Kubernetes' types), compose.yaml, the Dockerfile, systemd's units and Prometheus' rules, each with the reader of
// those who use it. It is a module of its own, because those readers have hundreds of dependencies. AGENTD names the
// binary whose commands the files call.
package deploy
