"""What every engine must do: cases at a scripted model, and what cases cannot say."""
