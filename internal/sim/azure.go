package sim

import (
	"net/http"
	"strings"
)

// Azure's paths for the same two APIs. At v1 they are OpenAI's behind /openai; a dated
// version is named by api-version, and Chat Completions has the deployment in its path.

// azurePath gives OpenAI's path for one of Azure's, or what Azure answers instead. The
// deployment becomes the request's path value of that name.
func azurePath(r *http.Request) (path string, fail *apiError) {
	notFound := &apiError{status: http.StatusNotFound, code: "404", typ: "invalid_request_error", message: "Resource not found"}
	rest, _ := strings.CutPrefix(r.URL.Path, "/openai/")
	dated := r.URL.Query().Get("api-version")
	switch {
	case r.Header.Get("Api-Key") == "" && !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer "):
		return "", &apiError{status: http.StatusUnauthorized, code: "401", typ: "invalid_request_error",
			message: "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource."}
	case strings.HasPrefix(rest, "v1/"):
		return "/" + rest, nil
	case dated == "":
		return "", notFound
	case rest == "responses":
		if dated < "2025-03-01" {
			return "", &apiError{status: http.StatusBadRequest, code: "BadRequest", typ: "invalid_request_error", message: "Azure OpenAI Responses API is enabled only for api-version 2025-03-01-preview and later"}
		}
		return "/v1/responses", nil
	}
	deployment, api, _ := strings.Cut(strings.TrimPrefix(rest, "deployments/"), "/")
	if !strings.HasPrefix(rest, "deployments/") || deployment == "" || api != "chat/completions" {
		return "", notFound
	}
	r.SetPathValue("deployment", deployment)
	return "/v1/chat/completions", nil
}
