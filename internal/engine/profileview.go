package engine

// ProfileView is a profile as clients see it.
type ProfileView struct {
	Name        string   `json:"name"`
	Version     string   `json:"version,omitempty"`
	Description string   `json:"description,omitempty"`
	Labels      []string `json:"labels,omitempty"`
	// Model is the primary model, as "provider/model".
	Model string `json:"model,omitempty"`
}
