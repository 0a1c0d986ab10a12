{
  description = "{{.Summary}}";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [{{range $os, $name := .Systems}}{{range index $.Archives $os}} "{{.Word "amd64" "x86_64" "arm64" "aarch64"}}-{{$os}}"{{end}}{{end}} ];
    in
    {
      packages = nixpkgs.lib.genAttrs systems (system: {
        default = nixpkgs.legacyPackages.${system}.callPackage ./package.nix { };
      });
    };
}
