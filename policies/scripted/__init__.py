"""Rules that play without a model: baselines, called scripted everywhere."""
